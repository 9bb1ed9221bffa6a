#!/usr/bin/env bash
# Formatting, lints, licences, and that what is generated is what is checked in.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '== %s\n' "$*" >&2; }

say "formatting"
cargo fmt --all --check

say "lints"
cargo clippy --quiet --workspace --all-targets -- -D warnings

say "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps

say "licences and sources"
if ! cargo deny --version > /dev/null 2>&1; then
  # From elsewhere: this project's build settings are not meant for it.
  (cd / && cargo install --quiet --locked cargo-deny)
fi
cargo deny --workspace --config .config/deny.toml check licenses bans sources

say "workflows"
if command -v go > /dev/null 2>&1; then
  actionlint=target/actionlint
  [ -x "$actionlint" ] || GOBIN="$PWD/target" go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
  "$actionlint" .github/workflows/*.yml
else
  say "actionlint needs Go to be built; workflows are not checked"
fi

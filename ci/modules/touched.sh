#!/usr/bin/env bash
# Prints the agents whose modules differ between BASE and the working tree, in a checkout of a module registry.
set -euo pipefail

chmod +x "$PROGRAM"
changed=$(git diff --name-only "$BASE")
"$PROGRAM" list agents --format github \
  | jq -r '.include[] | select(.path != null) | "\(.agent) \(.path)/"' \
  | while read -r agent path; do
    # Whole directories: `codex` is no part of `codex-lite`.
    if grep -q "^${path}" <<< "$changed"; then printf '%s ' "$agent"; fi
  done

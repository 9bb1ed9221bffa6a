#!/usr/bin/env bash
# Benchmarks, each against its peer in the same run. Needs root, Docker and GNU time.
#
#   ci/bench.sh [restart|start|probe|gateway …]     all where none is named
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --release -p reprise -p reprise-tests --bins
target="$(cargo metadata --format-version 1 --no-deps | jq -r .target_directory)/$(rustc -vV | sed -n 's/^host: //p')/release"
[ $# -gt 0 ] || set -- restart start probe gateway
for bench in "$@"; do
  case $bench in
    restart) "$target/bench" restart "$target/reprise" 15 ;;
    start) "$target/bench" start "$target/reprise" 25 ;;
    probe) "$target/bench" probe "$target/reprise" 5 ;;
    gateway) "$target/bench" gateway 5 ;;
    *) echo "no such benchmark: $bench" >&2; exit 64 ;;
  esac
done

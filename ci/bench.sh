#!/usr/bin/env bash
# Benchmarks, each against its peer in the same run. Needs root, Docker and GNU time.
#
#   ci/bench.sh [restart|start|probe|gateway|cluster|scale …]     all where none is named
#
# `cluster` and `scale` need KUBECONFIG, a cluster that has reprise's images (ci/cluster up, ci/cluster load) and kubectl.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --release -p reprise -p reprise-tests --bins
target="$(cargo metadata --format-version 1 --no-deps | jq -r .target_directory)/$(rustc -vV | sed -n 's/^host: //p')/release"
[ $# -gt 0 ] || set -- restart start probe gateway cluster scale
for bench in "$@"; do
  case $bench in
    restart) "$target/bench" restart "$target/reprise" 15 ;;
    start) "$target/bench" start "$target/reprise" 25 ;;
    probe) "$target/bench" probe "$target/reprise" 5 ;;
    gateway) "$target/bench" gateway 5 ;;
    cluster) "$target/bench" cluster "$target/reprise" 15 ;;
    scale) for workspaces in 1 10 50; do "$target/bench" scale "$target/reprise" "$workspaces"; done ;;
    *) echo "no such benchmark: $bench" >&2; exit 64 ;;
  esac
done

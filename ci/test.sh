#!/usr/bin/env bash
# Installs what the tests need and runs them all.
#
#   ci/test.sh [ARGUMENTS OF cargo nextest run]
#
# REPRISE_REQUIRE names parts whose absence is a failure instead of a skip: sandbox, docker, kubernetes, an agent such as goose or
# reference, native, module, registry, or all. With `docker` in it and no daemon answering, one is installed and started, and ended again.
# REPRISE_SHARED names a folder with bundles of the module registry and of AgentAPI, where the public ones are out of reach.
set -euo pipefail
cd "$(dirname "$0")/.."

has() { command -v "$1" > /dev/null 2>&1; }
requires() { case ",${REPRISE_REQUIRE:-}," in *",$1,"* | *,all,*) true ;; *) false ;; esac; }
say() { printf '== %s\n' "$*" >&2; }

install() {
  if has apt-get && [ "$(id -u)" = 0 ]; then
    say "installing $*"
    [ -n "${apt_updated:-}" ] || { apt-get update -q > /dev/null; apt_updated=1; }
    DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "$@" > /dev/null
  else
    say "please install: $*"
  fi
}

# What modules' scripts call in a sandbox, whose programs are this machine's.
missing=()
for command in curl jq git; do has "$command" || missing+=("$command"); done
# A home on a disk of its own.
has mkfs.ext4 || [ -x /usr/sbin/mkfs.ext4 ] || missing+=(e2fsprogs)
# Aider is installed by pip, and runs on the machine's Python.
python3 -m pip --version > /dev/null 2>&1 || missing+=(python3 python3-pip)
[ ${#missing[@]} = 0 ] || install "${missing[@]}"

if ! cargo nextest --version > /dev/null 2>&1; then
  say "installing cargo-nextest (some minutes, once)"
  # From elsewhere: this project's build settings are not meant for it.
  (cd / && cargo install --quiet --locked cargo-nextest --no-default-features --features default-no-update)
fi

leave() {
  [ -z "${cluster_is_ours:-}" ] || ci/cluster down
  [ -z "${dockerd_pid:-}" ] || { kill "$dockerd_pid" 2> /dev/null; wait "$dockerd_pid" 2> /dev/null || true; }
}
trap leave EXIT

# The cluster's images are made by Docker.
if { requires docker || requires kubernetes; } && ! docker version > /dev/null 2>&1; then
  install docker.io iptables debootstrap
  say "starting dockerd"
  mkdir -p target
  dockerd > target/dockerd.log 2>&1 &
  dockerd_pid=$!
  for _ in $(seq 1 120); do
    docker version > /dev/null 2>&1 && break
    kill -0 "$dockerd_pid" 2> /dev/null || { tail -n 20 target/dockerd.log >&2; exit 1; }
    sleep 0.5
  done
  docker version > /dev/null 2>&1 || { say "dockerd did not answer in a minute"; exit 1; }
fi
if requires kubernetes && [ -z "${REPRISE_TEST_KUBECONFIG:-}" ]; then
  [ -d "${REPRISE_CLUSTER:-/var/lib/reprise-cluster}" ] || cluster_is_ours=1
  REPRISE_TEST_KUBECONFIG="$(ci/cluster up)"
  REPRISE_TEST_RESTART_KUBELET="$PWD/ci/cluster restart-kubelet"
  export REPRISE_TEST_KUBECONFIG REPRISE_TEST_RESTART_KUBELET
fi
# A daemon may be there without what builds the base image.
! { requires docker || requires kubernetes; } || has debootstrap || install debootstrap

say "building"
cargo build --quiet --workspace --all-targets

# Once, here: tests that run side by side would each obtain the same.
say "obtaining tools"
agentapi=()
[ -z "${REPRISE_SHARED:-}" ] || agentapi=(--agentapi-source "$REPRISE_SHARED/upstream/coder-agentapi.bundle")
target="$(cargo metadata --format-version 1 --no-deps | jq -r .target_directory)/$(rustc -vV | sed -n 's/^host: //p')"
"$target/debug/reprise" doctor --obtain "${agentapi[@]}" || say "not everything could be obtained; tests say what they miss"

if requires kubernetes; then
  say "giving the cluster its images"
  REPRISE="$target/debug/reprise" ci/cluster load
fi

say "testing"
cargo nextest run --workspace "$@"

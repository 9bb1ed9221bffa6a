#!/bin/bash
# What the start and the stop script share.
set -euo pipefail

# Whether this fault is asked for.
fault() { [ "${REPRISE_FAULT:-}" = "$1" ]; }

modules="${CODER_MODULE_DATA_DIR:-$HOME/.coder-modules}"
if fault module_dir_ignored; then modules="$HOME/.reference-module"; fi
dir="$modules/reprise/reference"
data="$HOME/.local/share/reference-agent"
state_file="${REFERENCE_STATE_FILE:-}"
pid_file="${REFERENCE_PID_FILE:-}"
state_file="${state_file:-$dir/agentapi-state.json}"
pid_file="${pid_file:-$dir/agentapi.pid}"
port="${REFERENCE_AGENTAPI_PORT:-3284}"
mkdir -p "$dir" "$(dirname "$state_file")" "$(dirname "$pid_file")"

# How often the workspace has been started, this time included.
starts_file="$dir/starts"

# Whether AgentAPI can keep its conversation: it can since 0.12.0. An older one is killed by SIGUSR1.
keeps_state() {
  [ "${REFERENCE_KEEPS_STATE:-true}" = true ] || return 1
  if fault version_gate_missing; then return 0; fi
  local version
  version="$(agentapi --version | awk '{print $NF}')"
  [ "$(printf '0.12.0\n%s\n' "${version#v}" | sort -V | head -n 1)" = 0.12.0 ]
}

# Whether a process is AgentAPI, and not another that has got its id since.
is_agentapi() { [ "$(cat "/proc/$1/comm" 2> /dev/null)" = agentapi ]; }

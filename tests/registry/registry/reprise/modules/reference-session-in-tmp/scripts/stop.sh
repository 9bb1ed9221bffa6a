#!/bin/bash
# Ends AgentAPI, and with it the agent, before the workspace ends.
set -euo pipefail

pid=$(cat "$HOME/.reference-module/agentapi.pid" 2> /dev/null || true)
[ -n "$pid" ] || exit 0
kill -TERM "$pid" 2> /dev/null || exit 0
for _ in $(seq 1 50); do
  kill -0 "$pid" 2> /dev/null || exit 0
  sleep 0.1
done
echo "AgentAPI is still there after 5 seconds"

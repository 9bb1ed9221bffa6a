#!/bin/bash
# Starts the reference agent under AgentAPI: a new session gets the task, an old one is resumed without it.
set -euo pipefail

dir="$HOME/.reference-module"
mkdir -p "$dir"

if reference-agent has-session; then
  echo "resuming the session"
  args=(chat --resume)
else
  echo "beginning a session"
  args=(chat)
  if [ -n "${REFERENCE_TASK_PROMPT:-}" ]; then
    printf '%s' "$REFERENCE_TASK_PROMPT" > "$dir/prompt.txt"
    args+=(--prompt-file "$dir/prompt.txt")
  fi
fi

port="${REFERENCE_AGENTAPI_PORT:-3284}"
nohup agentapi server --type custom --port "$port" --term-width 67 --term-height 1190 -- \
  reference-agent "${args[@]}" &> "$dir/agentapi.log" &
echo "$!" > "$dir/agentapi.pid"

for _ in $(seq 1 150); do
  if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
    echo "AgentAPI listens on port $port"
    exit 0
  fi
  sleep 0.1
done
echo "AgentAPI did not listen on port $port within 15 seconds" >&2
exit 1

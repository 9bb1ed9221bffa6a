# Starts the reference agent under AgentAPI: a new session gets the task, an old one is resumed without it.

starts=$(($(cat "$starts_file" 2> /dev/null || echo 0) + 1))
echo "$starts" > "$starts_file"

if fault start_fails && [ "$starts" -gt 1 ]; then
  echo "the module does not start a second time" >&2
  exit 1
fi
if fault database_copied && [ -e "$dir/sessions.db" ]; then
  # It is kept by copying its main file alone.
  rm -rf "$data"
  mkdir -p "$data"
  cp "$dir/sessions.db" "$data/sessions.db"
fi
if fault wal_removed; then rm -f "$data/sessions.db-wal"; fi
if fault wal_of_another && [ -e "$data/sessions.db-wal" ]; then
  # Its first half is a log's, and not this database's.
  head -c 4096 /dev/zero > "$data/sessions.db-wal"
fi
if fault session_in_tmp; then export REFERENCE_DATA_DIR=/tmp/reference-agent; fi
if fault orphaned_data; then head -c 100000 /dev/zero > "$CODER_SCRIPT_DATA_DIR/cache"; fi
if fault tmp_collision; then printf '#!/bin/sh\nexit 0\n' > /tmp/reference-main.sh; fi

if [ -n "${REFERENCE_DIRECTORY:-}" ]; then
  mkdir -p "$REFERENCE_DIRECTORY"
  cd "$REFERENCE_DIRECTORY"
fi

prompt="${REFERENCE_TASK_PROMPT:-}"
give_prompt() {
  printf '%s' "$prompt" > "$dir/prompt.txt"
  args+=(--prompt-file "$dir/prompt.txt")
}
# A session that a damaged store has lost is no reason not to start.
if reference-agent has-session; then
  echo "resuming the session"
  args=(chat --resume)
  if fault prompt_resent; then give_prompt; fi
  if fault prompt_resent_late && [ "$starts" -gt 2 ]; then give_prompt; fi
  if fault prompt_resent_reworded; then
    prompt="$(printf '%s' "$prompt" | tr ' ' '\n')"
    give_prompt
  fi
  if fault task_done_twice; then give_prompt; fi
else
  echo "beginning a session"
  args=(chat)
  if [ -n "$prompt" ]; then give_prompt; fi
fi

# A process id from before means nothing now; AgentAPI takes the process that has it for another AgentAPI, and does not start.
if ! fault pid_file_kept; then rm -f "$pid_file"; fi
export AGENTAPI_PID_FILE="$pid_file"
if keeps_state; then
  export AGENTAPI_STATE_FILE="$state_file" AGENTAPI_SAVE_STATE=true AGENTAPI_LOAD_STATE=true
  if fault state_not_restored; then export AGENTAPI_LOAD_STATE=false; fi
  if fault state_truncated_late && [ "$starts" -gt 2 ]; then truncate -s 100 "$state_file"; fi
  if fault state_truncated && [ -e "$state_file" ]; then truncate -s 100 "$state_file"; fi
else
  echo "AgentAPI $(agentapi --version | awk '{print $NF}') keeps no conversation, or shall not"
fi
type=(--type custom)
if fault type_not_passed; then type=(); fi
nohup agentapi server "${type[@]}" --port "$port" --term-width 67 --term-height 1190 -- \
  reference-agent "${args[@]}" &> "$dir/agentapi.log" &
agentapi_pid=$!
if fault process_left; then setsid nohup sleep 86398 &> /dev/null & fi

for _ in $(seq 1 150); do
  if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
    # An older AgentAPI does not write it.
    [ -s "$pid_file" ] || echo "$agentapi_pid" > "$pid_file"
    echo "AgentAPI listens on port $port"
    exit 0
  fi
  sleep 0.1
done
echo "AgentAPI did not listen on port $port within 15 seconds" >&2
exit 1

# Saves AgentAPI's conversation, hands its end to Coder, and ends AgentAPI, and with it the agent, before the workspace ends.

pid=$(cat "$pid_file" 2> /dev/null || true)
if [ -n "$pid" ] && ! is_agentapi "$pid"; then
  echo "process $pid is not AgentAPI any more"
  pid=
fi

save() {
  [ -n "$pid" ] && keeps_state || return 0
  local before
  before=$(stat -c %y.%s "$state_file" 2> /dev/null || true)
  kill -USR1 "$pid"
  for _ in $(seq 1 50); do
    [ "$(stat -c %y.%s "$state_file" 2> /dev/null || true)" = "$before" ] || return 0
    sleep 0.1
  done
  echo "AgentAPI has not saved its conversation within 5 seconds"
}

snapshot() {
  [ "${REFERENCE_POSTS_SNAPSHOT:-true}" = true ] && [ -n "${REFERENCE_TASK_ID:-}" ] || return 0
  local messages=10 bytes=60000 body
  if fault snapshot_too_long; then messages=100; fi
  if fault snapshot_too_large; then bytes=1000000; fi
  body=$(mktemp)
  # The last messages, fewer of them if they are too long, and of the last one its end.
  curl -fsS --max-time 10 "http://localhost:$port/messages" \
    | jq -c --argjson n "$messages" --argjson bytes "$bytes" '.messages |= (.[-$n:] | until((tojson | utf8bytelength) < $bytes or length < 2; .[1:])
        | map(if (.content | length) > 50000 then .content |= .[-50000:] else . end))' > "$body"
  if fault snapshot_of_the_beginning; then
    jq -c '.messages |= .[:1]' < "$body" > "$body.1" && mv "$body.1" "$body"
  fi
  curl -sS --max-time 10 -o /dev/null -w 'the log snapshot was met with %{http_code}\n' \
    -X POST "${CODER_AGENT_URL%/}/api/v2/workspaceagents/me/tasks/$REFERENCE_TASK_ID/log-snapshot?format=agentapi" \
    ${fail_on_refusal:+--fail} \
    -H "Coder-Session-Token: ${CODER_AGENT_TOKEN:-}" -H "Content-Type: application/json" --data-binary "@$body"
  rm -f "$body"
}

end() {
  [ -n "$pid" ] || return 0
  if fault end_not_awaited; then
    (sleep 2 && kill -TERM "$pid") &> /dev/null &
    return 0
  fi
  kill -TERM "$pid" 2> /dev/null || return 0
  for _ in $(seq 1 100); do
    is_agentapi "$pid" || return 0
    sleep 0.1
  done
  echo "AgentAPI is still there after 10 seconds, and is killed"
  kill -KILL "$pid" 2> /dev/null || true
}

if fault stop_fails; then
  echo "the stop script fails before it has done anything" >&2
  exit 1
fi
if ! fault state_saved_at_the_end; then save; fi
if fault snapshot_after_the_end; then end; fi
if fault stops_at_snapshot; then
  fail_on_refusal=yes
  snapshot
fi
# Whatever becomes of the snapshot, the rest of the stop must happen.
if ! fault snapshot_missing; then snapshot || echo "the log snapshot was not handed over"; fi
if fault snapshot_twice; then snapshot || true; fi
end
if fault database_copied; then cp "$data/sessions.db" "$dir/sessions.db"; fi
if fault shm_removed; then rm -f "$data/sessions.db-shm"; fi
if fault login_lost; then rm -f "$data/login"; fi

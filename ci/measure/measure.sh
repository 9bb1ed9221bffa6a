#!/usr/bin/env bash
# Measures AGENTS with PROGRAM, writes a job's summary, and ends with the run's own exit code, or with 1 if verdicts moved
# against BASELINE. A verdict that was accepted as a failure is no news: with a baseline only what moved fails the job.
set -euo pipefail

chmod +x "$PROGRAM"
read -ra agents <<< "${AGENTS:-}"
registry=()
[ -z "${REGISTRY:-}" ] || registry=(--registry "$REGISTRY")
summary=${GITHUB_STEP_SUMMARY:-/dev/stdout}

code=0
"$PROGRAM" run "${agents[@]}" "${registry[@]}" --format github >> "$summary" || code=$?
run=$(ls -d runs/*/ | tail -n 1)
"$PROGRAM" check "$run" --format junit > "$run/junit.xml" || true
[ -n "${BASELINE:-}" ] || exit "$code"
case $code in
  0 | 1 | 2)
    moved=0
    said=$("$PROGRAM" drift "$run" --baseline "$BASELINE") || moved=$?
    printf '\n### Since verdicts were accepted\n\n```\n%s\n```\n' "$said" >> "$summary"
    exit "$moved"
    ;;
  *) exit "$code" ;;
esac

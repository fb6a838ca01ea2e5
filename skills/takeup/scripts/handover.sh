#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# write the document that lets another agent go on
# usage: handover.sh [--task TASK] [--to AGENT] [OPTION...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"handover","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
exec git takeup handover --json "$@"

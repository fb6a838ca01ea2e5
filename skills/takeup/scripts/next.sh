#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# the one next step
# usage: next.sh [--task TASK] [OPTION...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"next","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
exec git takeup next --json "$@"

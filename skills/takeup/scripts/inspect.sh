#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# what is unfinished here, and may it be taken up
# usage: inspect.sh [--task TASK] [OPTION...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"inspect","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
exec git takeup inspect --json "$@"

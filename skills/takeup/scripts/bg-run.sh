#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# run a command that outlives this session
# usage: bg-run.sh COMMAND [ARGUMENT...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"bg","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
if [ "$#" -lt 1 ]; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"bg","error":{"code":"usage","message":"usage: bg-run.sh COMMAND [ARGUMENT...]","retryable":false}}'
  exit 2
fi
exec git takeup bg run --json -- "$@"

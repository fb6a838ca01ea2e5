#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# begin a task
# usage: start.sh TITLE [--check COMMAND]... [OPTION...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"start","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
if [ "$#" -lt 1 ]; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"start","error":{"code":"usage","message":"usage: start.sh TITLE [--check COMMAND]... [OPTION...]","retryable":false}}'
  exit 2
fi
data=$1
shift
exec git takeup start --json "$@" -- "$data"

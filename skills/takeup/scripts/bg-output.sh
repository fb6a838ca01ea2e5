#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# what a background command has printed
# usage: bg-output.sh ID [OPTION...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"bg","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
if [ "$#" -lt 1 ]; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"bg","error":{"code":"usage","message":"usage: bg-output.sh ID [OPTION...]","retryable":false}}'
  exit 2
fi
data=$1
shift
exec git takeup bg output --json "$@" -- "$data"

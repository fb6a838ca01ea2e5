#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# take a task up, after the person's yes
# usage: resume.sh TASK [--confirm TOKEN] [OPTION...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"resume","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
if [ "$#" -lt 1 ]; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"resume","error":{"code":"usage","message":"usage: resume.sh TASK [--confirm TOKEN] [OPTION...]","retryable":false}}'
  exit 2
fi
data=$1
shift
exec git takeup resume --json --task="$data" "$@"

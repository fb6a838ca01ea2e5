#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# questions to a person; the data is a question or a review's id
# usage: review.sh list|show|request|approve|reject [DATA] [OPTION...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"review","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
if [ "$#" -lt 1 ]; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"review","error":{"code":"usage","message":"usage: review.sh list|show|request|approve|reject [DATA] [OPTION...]","retryable":false}}'
  exit 2
fi
action=$1
shift
if [ "$#" -eq 0 ]; then
  exec git takeup review "$action" --json
fi
data=$1
shift
exec git takeup review "$action" --json "$@" -- "$data"

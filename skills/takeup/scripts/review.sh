#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# questions to a person: list, show, request, approve, reject
# usage: review.sh list|show|request|approve|reject [ARGUMENT...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":1,"ok":false,"command":"review","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
exec git takeup review --json "$@"

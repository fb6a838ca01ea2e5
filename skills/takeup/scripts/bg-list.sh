#!/bin/sh
# Part of the takeup skill, made by git-takeup.
# background commands and their state
# usage: bg-list.sh [OPTION...]
set -u
if ! command -v git-takeup >/dev/null 2>&1; then
  printf '%s\n' '{"schema":"takeup.v1","ok":false,"command":"bg","error":{"code":"not-installed","message":"git-takeup is not on PATH","retryable":false}}'
  exit 1
fi
exec git takeup bg list --json "$@"

#!/usr/bin/env bash
# Runs every fuzz test of the repository, each for the given time: hack/fuzz.sh 30s

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
go=${GO:-go}
time=${1:-30s}

found=0
while IFS=: read -r file _ function; do
  found=1
  echo "$function in $(dirname "$file"), for $time"
  "$go" test -run '^$' -fuzz "^$function\$" -fuzztime "$time" "./$(dirname "$file")"
done < <(git grep --line-number --only-matching --untracked -E '^func Fuzz[A-Za-z0-9_]*' -- '*_test.go' | sed 's/:func /:/')

if ((found == 0)); then
  echo "There is no fuzz test."
fi

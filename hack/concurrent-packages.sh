#!/usr/bin/env bash
# Prints the packages with concurrent code or tests: they have goroutines, parallel tests or locks, or use a package of test/ that starts
# processes. With -v, it prints all other packages, in which the race detector cannot find anything.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly pattern='(^|[^[:alnum:]."`])go (func|[[:alpha:]_.]+\()|\.Go\(|Parallel\(|\<(sync|atomic|errgroup|synctest|httptest|kit|envtest)\.[A-Z]|\<(garden|controlplane)\.(Start|Shared)|\<manager\.New\>'
wanted=0
if [[ ${1:-} == -v ]]; then
  wanted=1
fi
"${GO:-go}" list -f '{{.Dir}} {{.ImportPath}}' ./... | while read -r directory package; do
  found=0
  grep -qE "$pattern" "$directory"/*.go || found=1
  if ((found == wanted)); then
    echo "$package"
  fi
done

#!/usr/bin/env bash
# Builds the programs of control planes and nodes of a Kubernetes version other than the pinned one into
# bin/kubernetes/<version>, for tests of updates. Existing programs of that version are not built again.
#
# usage: hack/build-older.sh v1.36.0

set -euo pipefail

version=${1:-}
if [[ ! $version =~ ^v1\.[0-9]+\.[0-9]+$ ]]; then
  echo "error: name a version of Kubernetes, for example v1.36.0; this is \"$version\"" >&2
  exit 2
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$root/bin/kubernetes/$version
go=${GO:-go}
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy)
key="$version $("$go" env GOOS GOARCH GOVERSION | paste -sd/ -)"

up_to_date() {
  local name
  [[ -f $bin/.stamp && $(<"$bin/.stamp") == "$key" ]] || return 1
  for name in "${programs[@]}"; do
    [[ -x $bin/$name ]] || return 1
  done
}

if up_to_date; then
  echo "${programs[*]} $version are up to date in bin/kubernetes/$version."
  exit 0
fi

mkdir -p "$bin"
work=$(mktemp -d "$bin/.building.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# The go.mod of Kubernetes replaces its parts with directories of its repository, which are not part of its module. They are
# published as modules of the same minor and patch version.
module=$("$go" mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
sed -e 's,^module .*,module older,' -e "s,=> \./staging/src/\(k8s\.io/[a-z-]*\),=> \1 v0.${version#v1.}," "$module/go.mod" >go.mod
install -m 0644 "$module/go.sum" go.sum
"$go" mod edit -require="k8s.io/kubernetes@$version"

IFS=. read -r major minor _ <<<"${version#v}"
stamp=k8s.io/component-base/version
ldflags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor"
for name in "${programs[@]}"; do
  start=$SECONDS
  printf '%s %s … ' "$name" "$version"
  CGO_ENABLED=0 "$go" build -mod=mod -trimpath -ldflags "$ldflags" -o "$work/$name" "k8s.io/kubernetes/cmd/$name"
  mv -f "$work/$name" "$bin/$name"
  echo "$((SECONDS - start))s"
done
echo "$key" >"$bin/.stamp"

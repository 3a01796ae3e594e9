#!/usr/bin/env bash
# Builds the programs of a Kubernetes control plane into bin/, from the Go modules that are pinned in
# test/controlplane/binaries. A program that already exists in the pinned version is not built again.
# A program in $KUBEBUILDER_ASSETS is linked instead of built.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=$root/test/controlplane/binaries
bin=$root/bin
go=${GO:-go}
stamps=$bin/.controlplane

# name, package, module with the version
programs=(
  "etcd go.etcd.io/etcd/server/v3 go.etcd.io/etcd/server/v3"
  "kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes"
  "kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes"
  "kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes"
  "kubectl k8s.io/kubernetes/cmd/kubectl k8s.io/kubernetes"
  "kwok sigs.k8s.io/kwok/cmd/kwok sigs.k8s.io/kwok"
)

cd "$module"

version_of() { # module
  "$go" list -m -f '{{.Version}}' "$1"
}

kubernetes=$(version_of k8s.io/kubernetes)
etcd=$(version_of go.etcd.io/etcd/server/v3)
kwok=$(version_of sigs.k8s.io/kwok)
IFS=. read -r major minor _ <<<"${kubernetes#v}"

# Without these, the API server reports a version that clients cannot parse.
stamp=k8s.io/component-base/version
ldflags="-s -w -X $stamp.gitVersion=$kubernetes -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor"

key="$("$go" env GOOS GOARCH | paste -sd/ -) $(cat go.mod go.sum | cksum)"

pinned_version() { # module
  case $1 in
  k8s.io/kubernetes) echo "$kubernetes" ;;
  sigs.k8s.io/kwok) echo "$kwok" ;;
  *) echo "$etcd" ;;
  esac
}

given() { # name; succeeds if KUBEBUILDER_ASSETS has it and is not bin/ itself
  local asset=${KUBEBUILDER_ASSETS:-}/$1
  [[ -n ${KUBEBUILDER_ASSETS:-} && -x $asset && ! ${KUBEBUILDER_ASSETS} -ef $bin ]]
}

up_to_date() { # name version
  [[ -x $bin/$1 && -f $stamps/$1 && $(<"$stamps/$1") == "$2 $key" ]]
}

link() { # name
  local asset
  asset=$(cd "$KUBEBUILDER_ASSETS" && pwd)/$1
  rm -f "$stamps/$1"
  ln -sfn "$asset" "$bin/$1"
}

build() { # name package version
  local log=$work/$1.log
  if ! CGO_ENABLED=0 "$go" build -trimpath -ldflags "$ldflags" -o "$work/$1" "$2" >"$log" 2>&1; then
    printf '\n' && cat "$log" >&2
    echo "error: $1 could not be built, see above" >&2
    exit 1
  fi
  rm -f "$stamps/$1"
  mv -f "$work/$1" "$bin/$1"
  echo "$3 $key" >"$stamps/$1"
}

# The Stages define how kwok makes nodes and pods ready.
copy_stages() {
  local source stage
  source=$("$go" list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
  mkdir -p "$work/stages"
  for stage in "$source"/{node/fast,node/heartbeat-with-lease,pod/fast}/*.yaml; do
    [[ $(basename "$stage") == kustomization.yaml ]] || install -m 0644 "$stage" "$work/stages"
  done
  rm -rf "$bin/kwok-stages"
  mv "$work/stages" "$bin/kwok-stages"
  echo "$kwok $key" >"$stamps/kwok-stages"
}

duration() { # seconds
  if (($1 >= 60)); then printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); else printf '%ds' "$1"; fi
}

print_versions() {
  local name _
  echo "The control plane in bin/:"
  for program in "${programs[@]}"; do
    read -r name _ <<<"$program"
    case $name in
    kubectl) printf '  %-24s %s\n' "$name" "$("$bin/$name" version --client | head -n 1)" ;;
    *) printf '  %-24s %s\n' "$name" "$("$bin/$name" --version | head -n 1)" ;;
    esac
  done
}

mkdir -p "$stamps"
missing=0
for program in "${programs[@]}"; do
  read -r name package from <<<"$program"
  if given "$name"; then
    link "$name"
  elif ! up_to_date "$name" "$(pinned_version "$from")"; then
    missing=$((missing + 1))
  fi
done

if ((missing == 0)) && [[ -d $bin/kwok-stages && -f $stamps/kwok-stages && $(<"$stamps/kwok-stages") == "$kwok $key" ]]; then
  echo "The control plane (Kubernetes $kubernetes, etcd $etcd, kwok $kwok) is up to date in bin/."
  exit 0
fi

work=$(mktemp -d "$bin/.building.XXXXXX")
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT

if ((missing > 0)); then
  echo "Building a control plane into bin/: Kubernetes $kubernetes, etcd $etcd, kwok $kwok."
  echo "The first time takes about 5-15 minutes on 2 cores; finished programs are kept, so it can be interrupted."
fi

began=$SECONDS
count=0
for program in "${programs[@]}"; do
  read -r name package from <<<"$program"
  version=$(pinned_version "$from")
  count=$((count + 1))
  printf '[%d/%d] %s %s … ' "$count" "${#programs[@]}" "$name" "$version"
  if given "$name"; then
    echo "taken from KUBEBUILDER_ASSETS"
  elif up_to_date "$name" "$version"; then
    echo "up to date"
  else
    start=$SECONDS
    build "$name" "$package" "$version"
    duration $((SECONDS - start)) && echo
  fi
done
copy_stages
echo "Done in $(duration $((SECONDS - began)))."
print_versions

#!/usr/bin/env bash
# Tests a landscape from a user's perspective, in a clone of this repository, and prints commands, output and times. It fails at the first
# error. Usage: hack/landscape/shows.sh DIRECTORY [KILLS]
# DIRECTORY must not exist. It is kept with the build results. KILLS is the number of starts that are killed at random moments (5).

set -euo pipefail

directory=$1 kills=${2:-5}
git clone -q "$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)" "$directory"
cd "$directory"
export KUBECONFIG=$PWD/.run/landscape/kubeconfig
shots=$(mktemp -d)
trap 'rm -rf "$shots"' EXIT

show() { printf '\n[%s, load %s] $ %s\n' "$(date +%T)" "$(cut -d' ' -f1 /proc/loadavg)" "$*"; eval "$@"; }
kubectl() { bin/kubectl "$@"; }
# Lists the possible leftovers of the landscape on the host: processes and mounts with its directory, cgroups and the network device with its
# name, and all rules of nftables. Limits are not compared, because other landscapes may raise them.
name=landscape-$(printf %s "$PWD/.run/landscape" | sha256sum | cut -c1-5)
snapshot() {
  ps -eo args | grep -F -- "$PWD/" | grep -v grep || true
  mount | grep -F -e "$PWD/" -e "$name" || true
  ip -o link | grep -F "$name" || true
  ip route | grep -F "$name" || true
  find /sys/fs/cgroup -type d -name "$name"
  nft list ruleset
}
unchanged() { snapshot >"$shots/after"; diff "$shots/before" "$shots/after" && echo "The host is as before."; }

# BIN is the directory bin of another clone, whose programs are reused.
[[ -z ${BIN:-} ]] || cp -a "$BIN" bin

echo "== 1. Build, start, use"
snapshot >"$shots/before"
show "time make base-cluster"
show "bin/landscape/landscape status"
show "du -sh bin bin/landscape bin/landscape/images .run/landscape"
probe=$(awk '/name: probe/ { gsub("[\",}]", ""); print $5 ":" $7 }' .run/landscape/images.yaml)
cat >"$shots/web.yaml" <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: web, image: "$probe", args: [serve, ":8080"], readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}, volumeMounts: [{name: data, mountPath: /data}]}
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {containers: [{name: other, image: "$probe", args: [sleep]}]}
END
cat >"$shots/policy.yaml" <<END
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}
END
show "time (kubectl apply -f $shots/web.yaml && kubectl rollout status deployment/web --timeout=2m && kubectl wait pod/other --for=condition=Ready --timeout=2m)"
show "kubectl get pods,services,pvc -o wide"
show "kubectl exec other -- /probe lookup web.default.svc.cluster.local"
show "kubectl exec other -- /probe get http://web/"
show "kubectl logs deployment/web | head -2"
show "kubectl exec deployment/web -- /probe write /data/file kept && kubectl exec deployment/web -- /probe read /data/file"
address=$(kubectl get service web -o 'jsonpath={.status.loadBalancer.ingress[0].ip}')
show "curl -sS --max-time 5 http://$address/   # the load balancer, from the host"
bin/kubectl port-forward deployment/web 18080:8080 >/dev/null & forward=$!
show "curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:18080/   # port-forward"
kill $forward
show "kubectl apply -f $shots/policy.yaml"
until ! kubectl exec other -- /probe get http://web/ >/dev/null 2>&1; do :; done
show "kubectl exec other -- /probe get http://web/ || echo 'The NetworkPolicy drops it.'"
show "kubectl exec deployment/web -- /probe get http://web/   # the policy allows it"
show "make landscape-push C=probe"

echo "== 2. Remove"
show "time make base-cluster-down"
show unchanged
for ((i = 1; i <= kills; i++)); do
  moment=$((RANDOM % 200)) # tenths of a second
  setsid bin/landscape/landscape up >"$shots/up" 2>&1 & program=$!
  sleep "$((moment / 10)).$((moment % 10))"
  # Kill the program first, so that it starts no more processes. Then kill the processes of all services and containers.
  kill -9 -- "-$program" || true
  find /sys/fs/cgroup -path "*/$name/*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un | xargs -r kill -9 2>/dev/null || true
  show "make base-cluster-down   # start $i, killed after $((moment / 10)).$((moment % 10)) s, last output: $(tail -1 "$shots/up")"
  show unchanged
done

echo "== 3. and 4. The resource-manager with its chart, and machines"
show "make test-landscape LANDSCAPE='TestResourceManager|TestMachines'"
show unchanged

package servicehost

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

const host = "api.example.org"

func erase(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Env = nil
		}
	}
}

func TestHost(t *testing.T) {
	admittest.Pods(NewHandler(host), erase).Run(t, map[string]admittest.Case{
		"every container and init container": {
			Before: `
spec:
  initContainers: [{name: a, env: [{name: A, value: "1"}]}, {name: b, restartPolicy: Always}]
  containers: [{name: c, env: [{name: B, value: "$(A)"}]}, {name: d, env: []}]
`,
			After: `
spec:
  initContainers:
  - {name: a, env: [{name: A, value: "1"}, {name: KUBERNETES_SERVICE_HOST, value: api.example.org}]}
  - {name: b, restartPolicy: Always, env: [{name: KUBERNETES_SERVICE_HOST, value: api.example.org}]}
  containers:
  - {name: c, env: [{name: B, value: "$(A)"}, {name: KUBERNETES_SERVICE_HOST, value: api.example.org}]}
  - {name: d, env: [{name: KUBERNETES_SERVICE_HOST, value: api.example.org}]}
`,
		},
		"the variable is there": {Before: `
spec:
  initContainers: [{name: a, env: [{name: KUBERNETES_SERVICE_HOST, value: other}, {name: A}]}]
  containers:
  - {name: b, env: [{name: KUBERNETES_SERVICE_HOST}]}
  - {name: c, env: [{name: KUBERNETES_SERVICE_HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}
`},
		"some have it": {
			Before: `spec: {containers: [{name: a, env: [{name: KUBERNETES_SERVICE_HOST, value: other}]}, {name: b}]}`,
			After: `
spec:
  containers:
  - {name: a, env: [{name: KUBERNETES_SERVICE_HOST, value: other}]}
  - {name: b, env: [{name: KUBERNETES_SERVICE_HOST, value: api.example.org}]}
`,
		},
		"no containers": {Before: `spec: {containers: []}`},
	})
	admittest.Pods(NewHandler(""), erase).Run(t, map[string]admittest.Case{
		"no host is configured": {Before: `spec: {containers: [{name: a}]}`},
	})
}

func FuzzHost(f *testing.F) {
	handler := admittest.Pods(NewHandler(host), erase)
	f.Add([]byte(`{"metadata":{"name":"a"},"spec":{"initContainers":[{"name":"a"}],"containers":[{"name":"b","env":[{"name":"A","value":"1"}]},{"name":"c","env":[{"name":"KUBERNETES_SERVICE_HOST"}]}]}}`))
	f.Add([]byte(`{"spec":{"containers":[null,{"env":null}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) { handler.Robust(t, raw) })
}

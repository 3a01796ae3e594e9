package managedresource

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

const benchmarkObjects = 1000

// benchmarkManifest is a workload of common size.
const benchmarkManifest = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-NUMBER
  namespace: shop
  labels: {app: app-NUMBER}
spec:
  replicas: 2
  selector: {matchLabels: {app: app-NUMBER}}
  template:
    metadata: {labels: {app: app-NUMBER}}
    spec:
      serviceAccountName: app
      containers:
      - name: app
        image: registry.example.com/app:v1.2.3
        args: [--listen=:8080, --log-level=info]
        env:
        - {name: HOME, value: /home/app}
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        readinessProbe: {httpGet: {path: /readyz, port: http}}
        volumeMounts: [{name: config, mountPath: /etc/app}]
      volumes: [{name: config, configMap: {name: app-NUMBER}}]
---
`

func benchmarkText() string {
	var text strings.Builder
	for i := range benchmarkObjects {
		text.WriteString(strings.ReplaceAll(benchmarkManifest, "NUMBER", fmt.Sprint(i)))
	}
	return text.String()
}

func BenchmarkDecode(b *testing.B) {
	text := benchmarkText()
	documents, _ := decodeSecret(secretWith(map[string]string{"a.yaml": text}), DefaultLimits())
	var asJSON strings.Builder
	for _, manifest := range render(documents, testScopes(), nil, testMarks(nil)).manifests {
		asJSON.Write(manifest.Body)
	}
	for name, secret := range map[string]*corev1.Secret{
		"YAML":       secretWith(map[string]string{"a.yaml": text}),
		"compressed": secretWith(map[string]string{"a.yaml.br": compress(b, []byte(text))}),
		"JSON":       secretWith(map[string]string{"a.json": asJSON.String()}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if documents, problems := decodeSecret(secret, DefaultLimits()); len(documents) != benchmarkObjects || len(problems) > 0 {
					b.Fatalf("got %d objects and %v", len(documents), textsOf(problems))
				}
			}
		})
	}
}

func BenchmarkRender(b *testing.B) {
	text := map[string]string{"a.yaml": benchmarkText()}
	scopes, marks := testScopes(), testMarks(map[string]string{"team": "blue"})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer() // rendering changes the documents, so each round needs its own
		documents, _ := decodeSecret(secretWith(text), DefaultLimits())
		b.StartTimer()
		if result := render(documents, scopes, nil, marks); len(result.manifests) != benchmarkObjects {
			b.Fatalf("got %d manifests and %v", len(result.manifests), textsOf(result.problems))
		}
	}
}

func BenchmarkPlanApply(b *testing.B) {
	in := applyInput{recorded: inventory{}, live: map[object.Key]live.State{}, ownership: owners{}.ownership()}
	for i := range benchmarkObjects {
		manifest := manifestOf(deploymentKind, "shop", fmt.Sprint("app-", i))
		in.manifests = append(in.manifests, manifest)
		in.recorded[manifest.Key()] = entryOf(manifest, "sent.owned")
		in.live[manifest.Key()] = present(live.Observation{Origin: "garden/shop", OwnedDigest: "owned"})
	}
	b.ReportAllocs()
	for b.Loop() {
		if changes := planApply(in); changes[0].action != actionSkip {
			b.Fatalf("got %s, want Skip: at rest nothing is to be done", changes[0].action)
		}
	}
}

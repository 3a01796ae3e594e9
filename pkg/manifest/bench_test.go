package manifest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const benchmarkObjects = 1000

// benchmarkManifest is a workload of typical size.
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

func BenchmarkDecode(b *testing.B) {
	text := benchmarkText()
	documents, _ := decodeSecret(secretWith(map[string]string{"a.yaml": text}), DefaultLimits())
	var asJSON strings.Builder
	for _, manifest := range Render(documents, testScopes(), nil, testMarks(nil)).Manifests {
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
		b.StopTimer() // rendering changes the documents, so each iteration needs its own
		documents, _ := decodeSecret(secretWith(text), DefaultLimits())
		b.StartTimer()
		if result := Render(documents, scopes, nil, marks); len(result.Manifests) != benchmarkObjects {
			b.Fatalf("got %d manifests and %v", len(result.Manifests), textsOf(result.Errors))
		}
	}
}

func benchmarkText() string {
	var text strings.Builder
	for i := range benchmarkObjects {
		text.WriteString(strings.ReplaceAll(benchmarkManifest, "NUMBER", fmt.Sprint(i)))
	}
	return text.String()
}

package decision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// seedText is a Seed that passes all filters for shootText. Tests change it by merging other texts into it.
const seedText = `
spec:
  provider: {type: local, region: europe-west-1, zones: [a, b, c]}
  networks: {nodes: 10.10.0.0/16, pods: 10.11.0.0/16, services: 10.12.0.0/16}
  settings: {scheduling: {visible: true}}
status:
  lastOperation: {type: Reconcile, state: Succeeded}
  conditions: [{type: GardenletReady, status: "True"}]
`

const shootText = `
metadata: {name: shop, namespace: garden-dev}
spec:
  region: europe-west-1
  provider: {type: local, workers: [{name: pool, zones: [a]}]}
  networking: {nodes: 10.1.0.0/16, pods: 10.2.0.0/16, services: 10.3.0.0/16}
`

// parse decodes texts in YAML, each into the result of the one before.
func parse[T any](t *testing.T, texts ...string) *T {
	t.Helper()
	object := new(T)
	for _, text := range texts {
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
	}
	return object
}

// seeds is a list of Seeds: changes to seedText by name.
type seeds map[string]string

func (s seeds) list(t *testing.T) []*corev1beta1.Seed {
	t.Helper()
	var list []*corev1beta1.Seed
	for name, change := range s {
		seed := parse[corev1beta1.Seed](t, seedText, change)
		seed.Name = name
		list = append(list, seed)
	}
	return list
}

func regionConfig(name, profiles string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Annotations: map[string]string{"scheduling.gardener.cloud/cloudprofiles": profiles}},
		Data:       data,
	}
}

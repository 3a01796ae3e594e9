package shootvalidator

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

const (
	profileYAML = `
metadata: {name: cp}
spec:
  type: aws
  kubernetes:
    versions:
    - {version: 1.35.4}
    - {version: 1.34.7, expirationDate: "2026-01-01T00:00:00Z"}
    - {version: 1.36.0, lifecycle: [{classification: preview, startTime: "2027-01-01T00:00:00Z"}]}
  machineImages:
  - name: linux
    versions:
    - {version: 2.0.0, inPlaceUpdates: {supported: true, minVersionForUpdate: 1.9.0}}
    - {version: 1.0.0, expirationDate: "2026-01-01T00:00:00Z"}
    - {version: 1.1.0, expirationDate: "2026-01-01T00:00:00Z"}
    - {version: 3.0.0, kubeletVersionConstraint: ">= 1.36"}
    - {version: 4.0.0, architectures: [arm64]}
  machineTypes:
  - {name: small, cpu: "2", gpu: "0", memory: 4Gi}
  - {name: large, cpu: "8", gpu: "0", memory: 16Gi}
  - {name: old, cpu: "2", gpu: "0", memory: 4Gi, usable: false}
  volumeTypes: [{name: fast, class: premium, minSize: 10Gi}, {name: gone, class: premium, usable: false}]
  regions: [{name: europe, zones: [{name: a}, {name: b, unavailableMachineTypes: [small], unavailableVolumeTypes: [fast]}]}]
  limits: {maxNodesTotal: 5}`
	shootYAML = `
metadata: {name: one, namespace: garden-dev}
spec:
  cloudProfile: {kind: CloudProfile, name: cp}
  credentialsBindingName: own
  region: europe
  kubernetes: {version: 1.35.4}
  networking: {pods: 10.1.0.0/16, services: 10.2.0.0/16, nodes: 10.3.0.0/16}
  provider:
    type: aws
    workers:
    - {name: pool, minimum: 1, maximum: 2, machine: {type: small, architecture: amd64, image: {name: linux, version: 2.0.0}}, volume: {type: fast, size: 20Gi}, zones: [a]}`
	seedYAML = `
metadata: {name: seed}
spec:
  provider: {type: aws, region: europe, zones: [a]}
  backup: {provider: aws}
  dns: {internal: {type: aws, domain: internal.example.org}, defaults: [{type: aws, domain: example.org}]}
  networks: {nodes: 10.20.0.0/16, pods: 10.21.0.0/16, services: 10.22.0.0/16}
  taints: []`
)

func parse[T any](tb testing.TB, text string) *T {
	tb.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		tb.Fatal(err)
	}
	return object
}

// world returns the objects of the garden.
func world(tb testing.TB) []runtime.Object {
	tb.Helper()
	project := parse[gardencorev1beta1.Project](tb, `{metadata: {name: dev}, spec: {namespace: garden-dev}}`)
	full := parse[gardencorev1beta1.Seed](tb, seedYAML)
	full.Name, full.Spec.Networks.Pods = "other", "10.31.0.0/16"
	full.Spec.DNS.Defaults[0].Domain, full.Spec.Taints = "example.com", []gardencorev1beta1.SeedTaint{{Key: "t"}}
	binding := parse[gardencorev1beta1.SecretBinding](tb, `{metadata: {name: foreign, namespace: garden-dev}, provider: {type: gcp}, secretRef: {name: s}}`)
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "garden-dev", "empty"
	return []runtime.Object{
		parse[gardencorev1beta1.CloudProfile](tb, profileYAML), parse[gardencorev1beta1.Seed](tb, seedYAML), full, project, binding, secret,
		parse[gardencorev1beta1.Shoot](tb, `{metadata: {name: other, namespace: garden-dev}, spec: {region: r, kubernetes: {version: v}, provider: {type: t}, dns: {domain: x.example.net}}}`),
	}
}

// request returns the request that replaces an old Shoot, or that creates a Shoot if there is no old one.
func request(shoot, old *gardencorev1beta1.Shoot, subresource string) *admission.Request {
	r := &admission.Request{
		Operation: apiadmission.Create, Kind: gardencorev1beta1.Kind("Shoot"), Resource: gardencorev1beta1.Resource("shoots"), Subresource: subresource,
		Namespace: shoot.Namespace, Name: shoot.Name, User: &user.DefaultInfo{Name: "admin", Groups: []string{"system:masters"}}, Object: shoot,
	}
	if old != nil {
		r.Operation, r.Old = apiadmission.Update, old
	}
	return r
}

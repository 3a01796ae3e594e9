package v1beta1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	. "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func TestSetDefaultsSeed(t *testing.T) {
	const base = "dns: {}\nnetworks: {pods: 10.1.0.0/16, services: 10.2.0.0/16, ipFamilies: [IPv4]}\nprovider: {type: local, region: local}\n"
	check(t, "dns: {}\nnetworks: {pods: 10.1.0.0/16, services: 10.2.0.0/16}\nprovider: {type: local, region: local}\n", base+`
settings:
  excessCapacityReservation: {configs: [{resources: {cpu: "2", memory: 6Gi}}]}
  scheduling: {visible: true}
  loadBalancerServices: {zonalIngress: {enabled: true}}
  verticalPodAutoscaler: {enabled: true}
  dependencyWatchdog: {weeder: {enabled: true}, prober: {enabled: true}}
  topologyAwareRouting: {enabled: false}
  persistentVolumeClaimAutoscaler: {enabled: false}`, SetDefaultsSeedSpec)
	const own = base + `
settings:
  excessCapacityReservation: {enabled: false}
  scheduling: {visible: false}
  loadBalancerServices: {zonalIngress: {enabled: false}}
  verticalPodAutoscaler: {enabled: false}
  dependencyWatchdog: {weeder: {enabled: false}, prober: {enabled: false}}
  topologyAwareRouting: {enabled: true}
  persistentVolumeClaimAutoscaler: {enabled: true}`
	check(t, own, own, SetDefaultsSeedSpec)
}

func TestSetDefaultsCloudProfile(t *testing.T) {
	check(t, `
spec:
  type: local
  kubernetes: {}
  regions: []
  machineImages: [{name: linux, versions: [{version: 1.0.0}, {version: 2.0.0, cri: [{name: other}], architectures: [arm64]}]}, {name: other, updateStrategy: patch, versions: []}]
  machineTypes: [{name: a, cpu: 1, gpu: 0, memory: 1Gi}, {name: b, cpu: 1, gpu: 0, memory: 1Gi, usable: false, architecture: arm64}]
  volumeTypes: [{name: v, class: standard}]`, `
spec:
  type: local
  kubernetes: {}
  regions: []
  machineImages:
  - name: linux
    updateStrategy: major
    versions: [{version: 1.0.0, cri: [{name: containerd}], architectures: [amd64]}, {version: 2.0.0, cri: [{name: other}], architectures: [arm64]}]
  - {name: other, updateStrategy: patch, versions: []}
  machineTypes:
  - {name: a, cpu: 1, gpu: 0, memory: 1Gi, usable: true, architecture: amd64}
  - {name: b, cpu: 1, gpu: 0, memory: 1Gi, usable: false, architecture: arm64}
  volumeTypes: [{name: v, class: standard, usable: true}]`, SetDefaultsCloudProfile)
}

// TestCapabilitiesReplaceArchitectures checks that architectures are part of the capabilities if there are capabilities.
func TestCapabilitiesReplaceArchitectures(t *testing.T) {
	const capabilities = "machineCapabilities: [{name: architecture, values: [amd64]}]"
	check(t, "spec: {type: local, kubernetes: {}, regions: [], "+capabilities+`,
  machineImages: [{name: linux, versions: [{version: 1.0.0}]}], machineTypes: [{name: a, cpu: 1, gpu: 0, memory: 1Gi}]}`,
		"spec: {type: local, kubernetes: {}, regions: [], "+capabilities+`,
  machineImages: [{name: linux, updateStrategy: major, versions: [{version: 1.0.0, cri: [{name: containerd}]}]}],
  machineTypes: [{name: a, cpu: 1, gpu: 0, memory: 1Gi, usable: true}]}`, SetDefaultsCloudProfile)
}

func TestSetDefaultsNamespacedCloudProfile(t *testing.T) {
	check(t, `
spec:
  parent: {kind: CloudProfile, name: local}
  machineImages: [{name: linux, versions: [{version: 1.0.0}]}]
  machineTypes: [{name: a, cpu: 1, gpu: 0, memory: 1Gi}]
  volumeTypes: [{name: v, class: standard, usable: false}]`, `
spec:
  parent: {kind: CloudProfile, name: local}
  machineImages: [{name: linux, versions: [{version: 1.0.0}]}]
  machineTypes: [{name: a, cpu: 1, gpu: 0, memory: 1Gi, usable: true}]
  volumeTypes: [{name: v, class: standard, usable: false}]`, SetDefaultsNamespacedCloudProfile)
}

func TestSetDefaultsProject(t *testing.T) {
	check(t, `
spec:
  namespace: garden
  members: [{kind: User, name: a, role: ""}, {kind: User, name: b, role: "", roles: [admin, uam]}, {kind: User, name: c, role: uam, roles: [viewer]}]
  tolerations: {defaults: [{key: other}], whitelist: [{key: seed.gardener.cloud/protected}]}`, `
spec:
  namespace: garden
  members: [{kind: User, name: a, role: viewer}, {kind: User, name: b, role: admin, roles: [uam]}, {kind: User, name: c, role: uam, roles: [viewer]}]
  tolerations: {defaults: [{key: other}, {key: seed.gardener.cloud/protected}], whitelist: [{key: seed.gardener.cloud/protected}]}`, SetDefaultsProject)
	check(t, "spec: {namespace: garden-dev}", "spec: {namespace: garden-dev}", SetDefaultsProject)
	check(t, "spec: {namespace: garden}", `spec: {namespace: garden, tolerations: {
  defaults: [{key: seed.gardener.cloud/protected}], whitelist: [{key: seed.gardener.cloud/protected}]}}`, SetDefaultsProject)
}

func TestSetDefaultsSecretBinding(t *testing.T) {
	check(t, "{metadata: {namespace: garden-dev}, secretRef: {name: a}, quotas: [{name: b}, {name: c, namespace: garden}]}",
		"{metadata: {namespace: garden-dev}, secretRef: {name: a, namespace: garden-dev}, quotas: [{name: b, namespace: garden-dev}, {name: c, namespace: garden}]}",
		SetDefaultsSecretBinding)
}

func TestSetDefaultsControllerRegistration(t *testing.T) {
	check(t, `
spec:
  deployment: {}
  resources:
  - {kind: Worker, type: local}
  - {kind: Worker, type: other, primary: false}
  - {kind: Extension, type: a}
  - {kind: Extension, type: b, reconcileTimeout: 1m, lifecycle: {reconcile: AfterWorker}, clusterCompatibility: [seed]}
  - {kind: SelfHostedShootExposure, type: local}`, `
spec:
  deployment: {policy: OnDemand}
  resources:
  - {kind: Worker, type: local, primary: true}
  - {kind: Worker, type: other, primary: false}
  - kind: Extension
    type: a
    primary: true
    reconcileTimeout: 3m
    lifecycle: {reconcile: AfterKubeAPIServer, delete: BeforeKubeAPIServer, migrate: BeforeKubeAPIServer}
    clusterCompatibility: [shoot]
  - kind: Extension
    type: b
    primary: true
    reconcileTimeout: 1m
    lifecycle: {reconcile: AfterWorker, delete: BeforeKubeAPIServer, migrate: BeforeKubeAPIServer}
    clusterCompatibility: [seed]
  - {kind: SelfHostedShootExposure, type: local, primary: true, continuousEndpointUpdate: true}`, SetDefaultsControllerRegistration)
}

// TestSchemesSetDefaults checks that a scheme sets defaults only if they are registered.
func TestSchemesSetDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	shoot := &Shoot{}
	if scheme.Default(shoot); shoot.Spec.Purpose != nil {
		t.Error("a client sets defaults")
	}
	if err := RegisterDefaults(scheme); err != nil {
		t.Fatal(err)
	}
	if scheme.Default(shoot); shoot.Spec.Purpose == nil {
		t.Error("the server sets no defaults")
	}
}

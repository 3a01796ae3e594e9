package v1beta1_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	. "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// check sets the defaults of an object, given as YAML, and compares the result with the expected YAML.
func check[T any](t *testing.T, given, wanted string, set func(*T)) {
	t.Helper()
	var object, want T
	if err := yaml.UnmarshalStrict([]byte(given), &object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(wanted), &want); err != nil {
		t.Fatal(err)
	}
	set(&object)
	gotText, wantText := text(t, object), text(t, want)
	if gotText != wantText {
		t.Errorf("got\n%s\nwant\n%s", gotText, wantText)
	}
	set(&object)
	if again := text(t, object); again != gotText {
		t.Errorf("setting the defaults again changes the object:\n%s\nafter\n%s", again, gotText)
	}
}

func text(t *testing.T, object any) string {
	t.Helper()
	content, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestSetDefaultsOfAShootWithoutNodes(t *testing.T) {
	check(t, `
metadata: {namespace: garden-dev, name: registry}
spec: {region: local, provider: {type: local}, kubernetes: {version: 1.34.2}, cloudProfile: {name: local}}`, `
metadata: {namespace: garden-dev, name: registry}
spec:
  region: local
  provider: {type: local}
  purpose: evaluation
  schedulerName: default-scheduler
  cloudProfile: {kind: CloudProfile, name: local}
  networking: {ipFamilies: [IPv4]}
  maintenance:
    autoUpdate: {kubernetesVersion: true}
    timeWindow: {begin: 000000+0000, end: 010000+0000}
  kubernetes:
    version: 1.34.2
    kubeAPIServer:
      requests: {maxNonMutatingInflight: 400, maxMutatingInflight: 200}
      eventTTL: 1h0m0s
      logging: {verbosity: 2}
      encryptionConfig: {provider: {type: aescbc}}`, SetDefaultsShoot)
}

func TestSetDefaultsOfAShootWithNodes(t *testing.T) {
	check(t, `
metadata: {namespace: garden, name: blue}
spec:
  region: local
  kubernetes: {version: 1.34.2}
  provider: {type: local, workers: [{name: pool, minimum: 1, maximum: 2, machine: {type: medium}}]}`, `
metadata: {namespace: garden, name: blue}
spec:
  region: local
  purpose: evaluation
  schedulerName: default-scheduler
  tolerations: [{key: seed.gardener.cloud/protected}]
  networking: {ipFamilies: [IPv4]}
  systemComponents: {coreDNS: {autoscaling: {mode: horizontal}}}
  maintenance:
    autoUpdate: {kubernetesVersion: true, machineImageVersion: true}
    timeWindow: {begin: 010000+0000, end: 020000+0000}
  kubernetes:
    version: 1.34.2
    kubeAPIServer:
      requests: {maxNonMutatingInflight: 400, maxMutatingInflight: 200}
      eventTTL: 1h0m0s
      logging: {verbosity: 2}
      encryptionConfig: {provider: {type: aescbc}}
      defaultNotReadyTolerationSeconds: 300
      defaultUnreachableTolerationSeconds: 300
    kubeControllerManager: {nodeMonitorGracePeriod: 40s, nodeCIDRMaskSize: 24}
    kubeScheduler: {profile: balanced}
    kubeProxy: {mode: IPTables, enabled: true}
    kubelet:
      failSwapOn: true
      imageGCHighThresholdPercent: 50
      imageGCLowThresholdPercent: 40
      serializeImagePulls: true
      imageMinimumGCAge: 2m0s
      imageMaximumGCAge: 0s
  provider:
    type: local
    workersSettings: {sshAccess: {enabled: true}}
    workers:
    - name: pool
      minimum: 1
      maximum: 2
      machine: {type: medium}
      updateStrategy: AutoRollingUpdate
      maxSurge: 1
      maxUnavailable: 0
      cri: {name: containerd}
      systemComponents: {allow: true}`, SetDefaultsShoot)
}

func TestSetDefaultsOfWorkers(t *testing.T) {
	for _, test := range []struct{ name, given, want string }{
		{"automatic in place", "updateStrategy: AutoInPlaceUpdate",
			"{updateStrategy: AutoInPlaceUpdate, maxSurge: 0, maxUnavailable: 1, machineControllerManager: {disableHealthTimeout: true}}"},
		{"manual in place", "{updateStrategy: ManualInPlaceUpdate, machineControllerManager: {disableHealthTimeout: false}}",
			"{updateStrategy: ManualInPlaceUpdate, machineControllerManager: {disableHealthTimeout: false}}"},
		{"own values", "{updateStrategy: AutoRollingUpdate, maxSurge: 20%, maxUnavailable: 2}", "{updateStrategy: AutoRollingUpdate, maxSurge: 20%, maxUnavailable: 2}"},
		{"own kubelet", "kubernetes: {kubelet: {maxPods: 50}}",
			"{updateStrategy: AutoRollingUpdate, maxSurge: 1, maxUnavailable: 0, kubernetes: {kubelet: {maxPods: 50, failSwapOn: true}}}"},
		{"swap", "kubernetes: {kubelet: {failSwapOn: false, featureGates: {NodeSwap: true}}}",
			"{updateStrategy: AutoRollingUpdate, maxSurge: 1, maxUnavailable: 0, kubernetes: {kubelet: {failSwapOn: false, featureGates: {NodeSwap: true}, memorySwap: {swapBehavior: LimitedSwap}}}}"},
		{"control plane", "controlPlane: {exposure: {extension: {}}}",
			"{updateStrategy: AutoRollingUpdate, maxSurge: 1, maxUnavailable: 0, controlPlane: {exposure: {extension: {type: local}}}}"},
		{"no system components", "systemComponents: {allow: false}", "{updateStrategy: AutoRollingUpdate, maxSurge: 1, maxUnavailable: 0, systemComponents: {allow: false}}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var given, want Worker
			if err := yaml.UnmarshalStrict([]byte(test.given), &given); err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			want.CRI = &CRI{Name: CRINameContainerD}
			if want.SystemComponents == nil {
				want.SystemComponents = &WorkerSystemComponents{Allow: true}
			}
			shoot := &Shoot{Spec: ShootSpec{Provider: Provider{Type: "local", Workers: []Worker{given}}}}
			SetDefaultsShoot(shoot)
			if got, want := text(t, shoot.Spec.Provider.Workers[0]), text(t, want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestSetDefaultsOfNodeRanges(t *testing.T) {
	for _, test := range []struct {
		families         []IPFamily
		maxPods, ofPool  int32
		want, wantOfIPv6 int32
	}{
		{[]IPFamily{IPFamilyIPv4}, 0, 0, 24, 0},
		{[]IPFamily{IPFamilyIPv4}, 110, 0, 24, 0},
		{[]IPFamily{IPFamilyIPv4}, 128, 0, 24, 0},
		{[]IPFamily{IPFamilyIPv4}, 129, 0, 23, 0},
		{[]IPFamily{IPFamilyIPv4}, 250, 0, 23, 0},
		{[]IPFamily{IPFamilyIPv4}, 60, 0, 25, 0},
		{[]IPFamily{IPFamilyIPv4}, 60, 250, 23, 0},
		{[]IPFamily{IPFamilyIPv6}, 110, 0, 64, 0},
		{[]IPFamily{IPFamilyIPv4, IPFamilyIPv6}, 110, 0, 24, 64},
		{[]IPFamily{IPFamilyIPv6, IPFamilyIPv4}, 110, 0, 24, 64},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			worker := Worker{Name: "pool"}
			if test.ofPool > 0 {
				worker.Kubernetes = &WorkerKubernetes{Kubelet: &KubeletConfig{MaxPods: &test.ofPool}}
			}
			shoot := &Shoot{Spec: ShootSpec{Networking: &Networking{IPFamilies: test.families}, Provider: Provider{Workers: []Worker{worker}}}}
			if test.maxPods > 0 {
				shoot.Spec.Kubernetes.Kubelet = &KubeletConfig{MaxPods: &test.maxPods}
			}
			SetDefaultsShoot(shoot)
			manager := shoot.Spec.Kubernetes.KubeControllerManager
			if *manager.NodeCIDRMaskSize != test.want || test.wantOfIPv6 > 0 && *manager.NodeCIDRMaskSizeIPv6 != test.wantOfIPv6 {
				t.Errorf("%d, %v", *manager.NodeCIDRMaskSize, manager.NodeCIDRMaskSizeIPv6)
			}
		})
	}
}

func TestSetDefaultsOfSettings(t *testing.T) {
	check(t, `
addons: {kubernetesDashboard: {enabled: true}, nginxIngress: {enabled: true}}
kubernetes: {clusterAutoscaler: {maxEmptyBulkDelete: 3}, verticalPodAutoscaler: {enabled: true}}
maintenance:
  timeWindow: {begin: 220000+0100, end: 230000+0100}
  autoUpdate: {kubernetesVersion: false}
  autoRotation: {credentials: {sshKeypair: {}, observability: {rotationPeriod: 24h}}}
provider: {type: ""}
region: ""`, `
addons: {kubernetesDashboard: {enabled: true, authenticationMode: token}, nginxIngress: {enabled: true, externalTrafficPolicy: Cluster}}
purpose: evaluation
schedulerName: default-scheduler
networking: {ipFamilies: [IPv4]}
kubernetes:
  kubeAPIServer:
    requests: {maxNonMutatingInflight: 400, maxMutatingInflight: 200}
    eventTTL: 1h0m0s
    logging: {verbosity: 2}
    encryptionConfig: {provider: {type: aescbc}}
  clusterAutoscaler:
    maxEmptyBulkDelete: 3
    maxScaleDownParallelism: 3
    scaleDownDelayAfterAdd: 1h
    scaleDownDelayAfterDelete: 0s
    scaleDownDelayAfterFailure: 3m
    scaleDownUnneededTime: 30m
    scaleDownUtilizationThreshold: 0.5
    scanInterval: 10s
    expander: least-waste
    maxNodeProvisionTime: 20m
    maxGracefulTerminationSeconds: 600
    newPodScaleUpDelay: 0s
    ignoreDaemonsetsUtilization: false
    verbosity: 2
    maxDrainParallelism: 1
    initialNodeGroupBackoffDuration: 5m
    maxNodeGroupBackoffDuration: 30m
    nodeGroupBackoffResetTimeout: 3h
    emitPerNodeGroupMetrics: false
    maxBinpackingTime: 5m
  verticalPodAutoscaler:
    enabled: true
    evictAfterOOMThreshold: 10m
    evictionRateBurst: 1
    evictionRateLimit: -1
    evictionTolerance: 0.5
    recommendationMarginFraction: 0.15
    updaterInterval: 1m
    recommenderInterval: 1m
    targetCPUPercentile: 0.9
    recommendationLowerBoundCPUPercentile: 0.5
    recommendationUpperBoundCPUPercentile: 0.95
    targetMemoryPercentile: 0.9
    recommendationLowerBoundMemoryPercentile: 0.5
    recommendationUpperBoundMemoryPercentile: 0.95
    cpuHistogramDecayHalfLife: 24h
    memoryHistogramDecayHalfLife: 24h
    memoryAggregationInterval: 24h
    memoryAggregationIntervalCount: 8
    recommenderUpdateWorkerCount: 10
maintenance:
  timeWindow: {begin: 220000+0100, end: 230000+0100}
  autoUpdate: {kubernetesVersion: false}
  autoRotation: {credentials: {sshKeypair: {rotationPeriod: 168h}, observability: {rotationPeriod: 24h}}}
provider: {type: ""}
region: ""`, func(spec *ShootSpec) { SetDefaultsShootSpec(spec, "garden-dev", "blue") })
}

// TestMaintenanceWindowsAreSpread checks that the default windows of 1,000 Shoots cover every hour of the day.
func TestMaintenanceWindowsAreSpread(t *testing.T) {
	begins := map[string]int{}
	for i := range 1000 {
		spec := &ShootSpec{}
		SetDefaultsShootSpec(spec, "garden-dev", fmt.Sprint("shoot-", i))
		begins[spec.Maintenance.TimeWindow.Begin]++
	}
	if len(begins) != 24 {
		t.Errorf("%v", begins)
	}
	for begin, shoots := range begins {
		if shoots > 100 {
			t.Errorf("the windows of %d Shoots begin at %s", shoots, begin)
		}
	}
}

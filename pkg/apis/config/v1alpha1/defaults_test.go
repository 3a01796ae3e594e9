package v1alpha1

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// expectedDefaults has every default that does not depend on an enabled feature.
const expectedDefaults = header + `
sourceClientConnection: &client
  kubeconfig: ""
  acceptContentTypes: ""
  contentType: ""
  qps: 100
  burst: 130
  cacheResyncPeriod: 24h0m0s
targetClientConnection: *client
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceName: gardener-resource-manager
  resourceNamespace: garden
server:
  webhooks: {bindAddress: "", port: 9449, tls: {serverCertDir: ""}}
  healthProbes: {bindAddress: "", port: 8081}
  metrics: {bindAddress: "", port: 8080}
debugging: {enableProfiling: false, enableContentionProfiling: false}
logLevel: info
logFormat: json
controllers:
  clusterID: ""
  resourceClass: resources
  cacheSyncTimeout: 2m0s
  garbageCollector: {enabled: false}
  health: {concurrentSyncs: 5, syncPeriod: 1m0s, otherKinds: FailuresOnly}
  csrApprover: {enabled: false}
  managedResource: {concurrentSyncs: 5, syncPeriod: 1m0s, alwaysUpdate: false, managedByLabelValue: gardener, maxSecretSize: 64Mi, fieldValidation: Warn, namespaceServiceAccounts: false}
  istioClusterConfiguration: {enabled: false}
  networkPolicy: {enabled: false}
  nodeCriticalComponents: {enabled: false}
  nodeAgentReconciliationDelay: {enabled: false, keepDelays: false, firstNode: false}
  tokenRequestor: {enabled: false, cleanUp: false}
  tokenInvalidator: {enabled: false}
webhooks:
  crdDeletionProtection: {enabled: false}
  endpointSliceHints: {enabled: false}
  extensionValidation: {enabled: false}
  highAvailabilityConfig: {enabled: false}
  kubernetesServiceHost: {enabled: false, host: ""}
  manualDeletionProtection: {enabled: false}
  nodeAgentAuthorizer: {enabled: false, authorizeWithSelectors: false}
  podKubeAPIServerLoadBalancing: {enabled: false}
  podSchedulerName: {enabled: false}
  podTopologySpreadConstraints: {enabled: false}
  projectedTokenMount: {enabled: false}
  seccompProfile: {enabled: false}
  systemComponentsConfig: {enabled: false}
  tokenInvalidator: {enabled: false}
  vpaInPlaceUpdates: {enabled: false}
`

func TestDefaults(t *testing.T) {
	expectYAML(t, mustParse(t, minimal), expectedDefaults)
}

func TestDefaultsOfWhatIsEnabled(t *testing.T) {
	c := mustParse(t, minimal+`
controllers:
  garbageCollector: {enabled: true}
  csrApprover: {enabled: true}
  istioClusterConfiguration: {enabled: true}
  networkPolicy: {enabled: true}
  nodeCriticalComponents: {enabled: true}
  nodeAgentReconciliationDelay: {enabled: true}
  tokenRequestor: {enabled: true}
  tokenInvalidator: {enabled: true}
webhooks:
  manualDeletionProtection: {enabled: true}
  nodeAgentAuthorizer: {enabled: true}
  podSchedulerName: {enabled: true}
  projectedTokenMount: {enabled: true}
  highAvailabilityConfig: {enabled: true}
`)
	expectYAML(t, c.Controllers, `
clusterID: ""
resourceClass: resources
cacheSyncTimeout: 2m0s
garbageCollector: {enabled: true, syncPeriod: 1h0m0s}
health: {concurrentSyncs: 5, syncPeriod: 1m0s, otherKinds: FailuresOnly}
csrApprover: {enabled: true, concurrentSyncs: 1}
managedResource: {concurrentSyncs: 5, syncPeriod: 1m0s, alwaysUpdate: false, managedByLabelValue: gardener, maxSecretSize: 64Mi, fieldValidation: Warn, namespaceServiceAccounts: false}
istioClusterConfiguration: {enabled: true, concurrentSyncs: 5}
networkPolicy: {enabled: true, concurrentSyncs: 5}
nodeCriticalComponents: {enabled: true, concurrentSyncs: 5, backoff: 10s}
tokenRequestor: {enabled: true, concurrentSyncs: 5, cleanUp: false}
nodeAgentReconciliationDelay: {enabled: true, minDelay: 0s, maxDelay: 5m0s, keepDelays: false, firstNode: false}
tokenInvalidator: {enabled: true, concurrentSyncs: 5}
`)
	expectYAML(t, c.Webhooks.ManualDeletionProtection, `
enabled: true
allowedUsers: ["system:serviceaccount:garden:gardener-operator", "system:serviceaccount:garden:gardener-resource-manager", "system:serviceaccount:garden:gardenlet"]
`)
	expectYAML(t, c.Webhooks.NodeAgentAuthorizer, `{enabled: true, authorizeWithSelectors: false}`)
	expectYAML(t, c.Webhooks.PodSchedulerName, `{enabled: true, schedulerName: default-scheduler}`)
	expectYAML(t, c.Webhooks.ProjectedTokenMount, `{enabled: true, expirationSeconds: 43200}`)
	expectYAML(t, c.Webhooks.HighAvailabilityConfig, `{enabled: true}`)
}

func TestDefaultsKeepWhatIsSet(t *testing.T) {
	c := mustParse(t, header+`
sourceClientConnection: {qps: -1, burst: 7, cacheResyncPeriod: 10s}
leaderElection: {leaderElect: false, resourceLock: other}
server: {metrics: {bindAddress: 127.0.0.1}, ui: {}}
controllers:
  clusterID: id
  health: {otherKinds: FullStatus}
  nodeAgentReconciliationDelay: {enabled: true, maxDelay: 0s}
webhooks: {manualDeletionProtection: {enabled: true, allowedUsers: []}}
`)
	if c.SourceClientConnection.QPS != -1 || c.SourceClientConnection.Burst != 7 ||
		c.SourceClientConnection.CacheResyncPeriod.Duration != 10*time.Second {
		t.Errorf("sourceClientConnection: %+v", c.SourceClientConnection)
	}
	if *c.LeaderElection.LeaderElect || c.LeaderElection.ResourceLock != "other" {
		t.Errorf("leaderElection: %+v", c.LeaderElection)
	}
	if *c.Server.Metrics != (Server{BindAddress: "127.0.0.1", Port: 8080}) {
		t.Errorf("server.metrics: %+v", *c.Server.Metrics)
	}
	if *c.Server.UI != (UIServer{Server: Server{Port: 8443}}) {
		t.Errorf("server.ui: %+v", *c.Server.UI)
	}
	if *c.Controllers.ClusterID != "id" || *c.Controllers.NodeAgentReconciliationDelay.MaxDelay != (metav1.Duration{}) {
		t.Errorf("controllers: %+v", c.Controllers)
	}
	if users := c.Webhooks.ManualDeletionProtection.AllowedUsers; users == nil || len(users) > 0 {
		t.Errorf("webhooks.manualDeletionProtection.allowedUsers: %v", users)
	}
	if c.Controllers.Health.OtherKinds != OtherKindsFullStatus {
		t.Errorf("controllers.health: %+v", c.Controllers.Health)
	}
}

func TestDefaultsAreStable(t *testing.T) {
	once := mustParse(t, minimal)
	twice := once.DeepCopy()
	SetDefaults(twice)
	if !reflect.DeepEqual(once, twice) {
		t.Errorf("the second call changed something:\n%s\n%s", toYAML(t, once), toYAML(t, twice))
	}
}

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object, err := scheme.New(SchemeGroupVersion.WithKind(Kind))
	if _, ok := object.(*ResourceManagerConfiguration); err != nil || !ok {
		t.Errorf("New returned %T, %v", object, err)
	}
}

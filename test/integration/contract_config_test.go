package integration

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	configHeader  = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n"
	exampleConfig = "../../examples/config/resource-manager.yaml"
)

// anyPorts returns a configuration with ephemeral ports. A resource-manager that starts with it does not take ports
// that others may use.
func anyPorts(tb testing.TB) string {
	tb.Helper()
	health, metrics := kit.FreePort(tb), kit.FreePort(tb)
	return "server: {healthProbes: {bindAddress: 127.0.0.1, port: " + strconv.Itoa(health) + "}, metrics: {bindAddress: 127.0.0.1, port: " + strconv.Itoa(metrics) + "}}\n"
}

// refused runs the binary, which must reject its configuration, and returns its output.
func (f *fixture) refused(config string, tune ...func(*exec.Cmd)) string {
	f.Helper()
	command, log := f.command(config)
	for _, change := range tune {
		change(command)
	}
	must(f, command.Start())
	f.Cleanup(func() { _ = command.Process.Kill() })
	end := time.AfterFunc(kit.WaitTimeout, func() { _ = command.Process.Kill() }) // if it accepts the configuration
	defer end.Stop()
	err := command.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		f.Errorf("%s\nthe exit is %v, want exit code 1", config, err)
	}
	return log.String()
}

// wrongConfigurations has one invalid value per rule, and parts of the expected message. The messages of rules that
// compare two fields also show defaults.
var wrongConfigurations = map[string][]string{
	"sourceClientConnection: {burst: -1, cacheResyncPeriod: 9s}": {"sourceClientConnection.burst: Invalid", "sourceClientConnection.cacheResyncPeriod: Invalid", "at least 10s"},
	"targetClientConnection: {burst: -1, cacheResyncPeriod: 9s}": {"targetClientConnection.burst: Invalid", "targetClientConnection.cacheResyncPeriod: Invalid"},
	"": {"leaderElection.resourceNamespace: Required"},
	"leaderElection: {resourceNamespace: a, leaseDuration: 10s}": {"leaderElection.leaseDuration: Invalid", "above renewDeadline, which is 10s"},
	"leaderElection: {resourceNamespace: a, renewDeadline: 1s}":  {"leaderElection.renewDeadline: Invalid", "at least retryPeriod, which is 2s"},
	"leaderElection: {resourceNamespace: a, renewDeadline: 15s}": {"leaderElection.leaseDuration: Invalid value: \"15s\""},
	"leaderElection: {resourceNamespace: a, leaseDuration: -1s, renewDeadline: -1s, retryPeriod: -1s}": {
		"leaderElection.leaseDuration: Invalid", "leaderElection.renewDeadline: Invalid", "leaderElection.retryPeriod: Invalid"},
	"server: {webhooks: {port: -1}, healthProbes: {port: -1}, metrics: {port: -1}}": {
		"server.webhooks.port: Invalid", "server.healthProbes.port: Invalid", "server.metrics.port: Invalid"},
	"{logLevel: warn, logFormat: xml}": {`logLevel: Unsupported value: "warn": supported values: "debug", "info", "error"`,
		`logFormat: Unsupported value: "xml": supported values: "json", "text"`},
	`controllers: {resourceClass: "", clusterID: "a:b"}`: {"controllers.resourceClass: Required", "controllers.clusterID: Invalid"},
	"controllers: {garbageCollector: {enabled: true, syncPeriod: 14s}, health: {concurrentSyncs: 0, syncPeriod: 14s}}": {
		"controllers.garbageCollector.syncPeriod: Invalid", "controllers.health.concurrentSyncs: Invalid", "controllers.health.syncPeriod: Invalid", "at least 15s"},
	"controllers: {health: {otherKinds: All, progressingThreshold: 0s}}": {
		`controllers.health.otherKinds: Unsupported value: "All": supported values: "FailuresOnly", "FullStatus"`, "controllers.health.progressingThreshold: Invalid"},
	`controllers: {csrApprover: {enabled: true, concurrentSyncs: 0, machineNamespace: ""}, tokenRequestor: {enabled: true, concurrentSyncs: 0}}`: {
		"controllers.csrApprover.concurrentSyncs: Invalid", "controllers.csrApprover.machineNamespace: Invalid", "controllers.tokenRequestor.concurrentSyncs: Invalid"},
	`controllers: {tokenRequestor: {enabled: true, serviceAccountNamespaces: [a, ""], targetSecretNamespaces: [A]}}`: {
		"controllers.tokenRequestor.serviceAccountNamespaces[1]: Invalid", "controllers.tokenRequestor.targetSecretNamespaces[0]: Invalid", "must be the name of a namespace"},
	`controllers: {managedResource: {concurrentSyncs: 0, syncPeriod: 14s, managedByLabelValue: ""}}`: {
		"controllers.managedResource.concurrentSyncs: Invalid", "controllers.managedResource.syncPeriod: Invalid", "controllers.managedResource.managedByLabelValue: Required"},
	"controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: -2s, maxDelay: -1s}}": {
		"controllers.nodeAgentReconciliationDelay.minDelay: Invalid", "controllers.nodeAgentReconciliationDelay.maxDelay: Invalid"},
	"controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: 6m}}": {"at most maxDelay, which is 5m0s"},
	"controllers: {networkPolicy: {namespaceSelectors: [{matchExpressions: [{key: a, operator: Is}]}]}}": {
		"controllers.networkPolicy.namespaceSelectors[0].matchExpressions[0].operator: Invalid"},
	"webhooks: {highAvailabilityConfig: {defaultNotReadyTolerationSeconds: -1, defaultUnreachableTolerationSeconds: -1}}": {
		"defaultNotReadyTolerationSeconds: Invalid", "defaultUnreachableTolerationSeconds: Invalid"},
	`webhooks: {nodeAgentAuthorizer: {enabled: true, machineNamespace: ""}, podSchedulerName: {enabled: true, schedulerName: ""}}`: {
		"webhooks.nodeAgentAuthorizer.machineNamespace: Invalid", "webhooks.podSchedulerName.schedulerName: Required"},
	"webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 599}}":                     {"webhooks.projectedTokenMount.expirationSeconds: Invalid"},
	"webhooks: {systemComponentsConfig: {podTolerations: [{key: a, operator: Exists, value: b}]}}": {"webhooks.systemComponentsConfig.podTolerations[0].value: Invalid"},
	// Spellings that the documents use, and wrong spellings.
	"controllers: {managedResources: {syncPeriod: 1s}}":                   {"controllers.managedResources.syncPeriod: Invalid"},
	"controllers: {managedResources: {}, managedResource: {}}":            {"set together with controllers.managedResource"},
	"sourceClientConnection: {namespace: a}":                              {"use sourceClientConnection.namespaces"},
	"controllers: {node: {backoff: 1s}}":                                  {"controllers.nodeCriticalComponents.backoff"},
	"{controllers: {tokenValidator: {}}, webhooks: {tokenValidator: {}}}": {"use controllers.tokenInvalidator", "use webhooks.tokenInvalidator"},
	"{colour: green, controllers: {health: {SyncPeriod: 1m}}}":            {"colour: Forbidden: unknown field", `write "syncPeriod"`},
	"{logLevel: info, logLevel: debug}":                                   {"logLevel"},
}

func TestContractConfigurationRules(t *testing.T) {
	f := newFixture(t)
	for file, says := range wrongConfigurations {
		config := configHeader
		if strings.HasPrefix(file, "{") {
			config = "{apiVersion: resourcemanager.config.gardener.cloud/v1alpha1, kind: ResourceManagerConfiguration, " + file[1:]
		} else {
			config += file + "\n"
		}
		wantContains(t, f.refused(config), says...)
	}
	for config, says := range map[string]string{
		"": "empty",
		strings.Replace(configHeader, "v1alpha1", "v1", 1):            "apiVersion: Unsupported",
		strings.Replace(configHeader, "kind: Resource", "kind: X", 1): "kind: Unsupported",
		"leaderElection: {leaderElect: false}\n":                      "apiVersion: Required",
	} {
		wantContains(t, f.refused(config), says)
	}
	wantContains(t, f.refused("", func(command *exec.Cmd) { command.Args = command.Args[:1] }), `required flag(s) "config" not set`)
	wantContains(t, f.refused("", func(command *exec.Cmd) { command.Args[2] = "/nowhere" }), "/nowhere: no such file")
}

// example returns the complete example, in which every field is set.
func example(f *fixture) map[string]any {
	f.Helper()
	content, err := os.ReadFile(exampleConfig)
	must(f, err)
	var tree map[string]any
	must(f, yaml.Unmarshal(content, &tree))
	return tree
}

// spoil replaces every field by a value of another type, and returns the paths.
func spoil(tree map[string]any, prefix string) []string {
	var paths []string
	for key, value := range tree {
		path := prefix + key
		switch value := value.(type) {
		case map[string]any:
			if !slices.Contains([]string{"nodeSelector", "podNodeSelector", "podSelector"}, key) {
				paths = append(paths, spoil(value, path+".")...)
				continue
			}
			tree[key] = []any{}
		case []any:
			tree[key] = map[string]any{}
		default:
			tree[key] = []any{}
		}
		paths = append(paths, path)
	}
	return paths
}

// TestContractConfigurationTypes: every field is known and has a type.
func TestContractConfigurationTypes(t *testing.T) {
	f := newFixture(t)
	count := 0
	for part := range example(f) {
		if part == "apiVersion" || part == "kind" {
			continue
		}
		tree := map[string]any{part: example(f)[part]}
		paths := spoil(tree, "")
		count += len(paths)
		content, err := yaml.Marshal(tree)
		must(t, err)
		said := f.refused(configHeader + string(content))
		for _, path := range paths {
			wantContains(t, said, "\n  - "+path+": ")
		}
		if strings.Contains(said, "unknown field") {
			t.Errorf("the binary reports an unknown field: %s", said)
		}
	}
	if count < 85 {
		t.Errorf("only %d fields", count)
	}
}

// TestContractCompleteConfiguration runs the binary with the complete example and checks its observable effects.
func TestContractCompleteConfiguration(t *testing.T) {
	f := newFixture(t)
	p := f.startWith(func(kubeconfig, healthPort, metricsPort string) string {
		tree := example(f)
		for path, value := range map[string]any{
			"sourceClientConnection.kubeconfig": kubeconfig, "sourceClientConnection.namespaces": []any{f.namespace},
			"leaderElection.resourceNamespace": f.namespace, "leaderElection.resourceName": "my-lease", "leaderElection.leaseDuration": "12s",
			"server.healthProbes.bindAddress": "127.0.0.1", "server.healthProbes.port": healthPort,
			"server.metrics.bindAddress": "127.0.0.1", "server.metrics.port": metricsPort,
			"server.webhooks.bindAddress": "127.0.0.1", "server.webhooks.port": int64(kit.FreePort(f)),
			"server.webhooks.tls.selfManaged.secretNamespace": f.namespace,
			"server.ui.bindAddress":                           "127.0.0.1", "server.ui.port": int64(kit.FreePort(f)),
			"controllers.clusterID": "identity", "controllers.resourceClass": "seed",
			// With the name that the documents of gardener-resource-manager use.
			"controllers.managedResources": map[string]any{
				"managedByLabelValue": "somebody", "maxSecretSize": "2Ki", "concurrentSyncs": int64(3),
			},
		} {
			must(f, unstructured.SetNestedField(tree, value, strings.Split(path, ".")...))
		}
		unstructured.RemoveNestedField(tree, "controllers", "managedResource")
		content, err := yaml.Marshal(tree)
		must(f, err)
		return strings.NewReplacer(`"`+healthPort+`"`, healthPort, `"`+metricsPort+`"`, metricsPort).Replace(string(content))
	})
	mr := f.manage("set", f.configMap("one", "1"))
	f.change(mr, func() { class := "seed"; mr.Spec.Class = &class })
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
	live := f.wantConfigMap("one", "1")
	if got := live.Annotations[resourcesv1alpha1.AnnotationOrigin] + " " + live.Labels[resourcesv1alpha1.LabelManagedBy]; got != "identity:"+f.namespace+"/set somebody" {
		t.Errorf("the object's marks are %s", got)
	}
	if got := f.read("set").Finalizers; !slices.Equal(got, []string{finalizer + "-seed"}) {
		t.Errorf("the finalizers are %v", got)
	}
	f.secret("set", "objects.yaml", f.configMap("one", "1")+strings.Repeat("# long\n", 500))
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionFalse, "DecodingFailed")
	lease := &coordinationv1.Lease{}
	must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "my-lease"}, lease))
	if *lease.Spec.LeaseDurationSeconds != 12 || *lease.Spec.HolderIdentity == "" {
		t.Errorf("the lease is %+v", lease.Spec)
	}
	wantContains(t, p.Written.String(), `"worker count":27`) // three that reconcile, and eight per worker that may wait for rollouts
	p.Stop()
	must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "my-lease"}, lease))
	if *lease.Spec.HolderIdentity != "" {
		t.Errorf("after the end, the lease is held by %q", *lease.Spec.HolderIdentity)
	}
}

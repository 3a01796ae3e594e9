package v1alpha1

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalidFiles has one invalid value for every rule: the file without its header, and the expected problems.
var invalidFiles = map[string]struct {
	file string
	want []string
}{
	"source burst": {"sourceClientConnection: {burst: -1}", []string{
		"sourceClientConnection.burst: Invalid value: -1: must be non-negative"}},
	"target burst": {"targetClientConnection: {burst: -1}", []string{
		"targetClientConnection.burst: Invalid value: -1: must be non-negative"}},
	"source resync": {"sourceClientConnection: {cacheResyncPeriod: 9s}", []string{
		`sourceClientConnection.cacheResyncPeriod: Invalid value: "9s": must be at least 10s`}},
	"target resync": {"targetClientConnection: {cacheResyncPeriod: 9999ms}", []string{
		`targetClientConnection.cacheResyncPeriod: Invalid value: "9.999s": must be at least 10s`}},
	"webhook port": {"server: {webhooks: {port: -1}}", []string{
		"server.webhooks.port: Invalid value: -1: must be between 0 and 65535"}},
	"health port": {"server: {healthProbes: {port: -1}}", []string{
		"server.healthProbes.port: Invalid value: -1: must be between 0 and 65535"}},
	"metrics port": {"server: {metrics: {port: 65536}}", []string{
		"server.metrics.port: Invalid value: 65536: must be between 0 and 65535"}},
	"page": {"server: {ui: {bindAddress: localhost, port: 8080}}", []string{
		`server.ui.bindAddress: Invalid value: "localhost": must be an IP address, such as 127.0.0.1; leave it out for all`,
		"server.ui.port: Invalid value: 8080: is that of server.metrics"}},
	"page beside the webhooks": {"server: {ui: {port: 9449}}", []string{"server.ui.port: Invalid value: 9449: is that of server.webhooks"}},
	"page port":                {"server: {ui: {port: 70000}}", []string{"server.ui.port: Invalid value: 70000: must be between 0 and 65535"}},
	"log level": {"logLevel: warn", []string{
		`logLevel: Unsupported value: "warn": supported values: "debug", "info", "error"`}},
	"log format": {"logFormat: xml", []string{
		`logFormat: Unsupported value: "xml": supported values: "json", "text"`}},
	"class": {`controllers: {resourceClass: ""}`, []string{
		"controllers.resourceClass: Required value: must not be empty"}},
	"garbage collector": {"controllers: {garbageCollector: {enabled: true, syncPeriod: 14s}}", []string{
		`controllers.garbageCollector.syncPeriod: Invalid value: "14s": must be at least 15s`}},
	"health": {"controllers: {health: {concurrentSyncs: 0, syncPeriod: 14s}}", []string{
		"controllers.health.concurrentSyncs: Invalid value: 0: must be at least 1",
		`controllers.health.syncPeriod: Invalid value: "14s": must be at least 15s`}},
	"health of other kinds": {"controllers: {health: {otherKinds: All}}", []string{
		`controllers.health.otherKinds: Unsupported value: "All": supported values: "FailuresOnly", "FullStatus"`}},
	"stuck at once": {"controllers: {health: {progressingThreshold: 0s}}", []string{
		`controllers.health.progressingThreshold: Invalid value: "0s": must be above 0; leave the field out if a rollout may take any time`}},
	"misspelt health check": {"controllers: {health: {checks: [{kind: A, healty: 'true'}]}}", []string{
		"controllers.health.checks[0].healty: Forbidden: unknown field: remove it, or use any of failed, group, healthy, kind, message, progressing"}},
	"csr approver": {`controllers: {csrApprover: {enabled: true, concurrentSyncs: 0, machineNamespace: ""}}`, []string{
		"controllers.csrApprover.concurrentSyncs: Invalid value: 0: must be at least 1",
		`controllers.csrApprover.machineNamespace: Invalid value: "": must not be empty; leave the field out if there is no such namespace`}},
	"managed resource": {`controllers: {managedResource: {concurrentSyncs: 0, syncPeriod: 14s, managedByLabelValue: ""}}`, []string{
		"controllers.managedResource.concurrentSyncs: Invalid value: 0: must be at least 1",
		"controllers.managedResource.managedByLabelValue: Required value: must not be empty",
		`controllers.managedResource.syncPeriod: Invalid value: "14s": must be at least 15s`}},
	"field validation": {"controllers: {managedResource: {fieldValidation: Ignore}}", []string{
		`controllers.managedResource.fieldValidation: Unsupported value: "Ignore": supported values: "Warn", "Strict"`}},
	"field managers": {`controllers: {managedResource: {keepFieldsOf: [a, "a*", "*", "", "*a*"]}}`, []string{
		`controllers.managedResource.keepFieldsOf[2]: Invalid value: "*": must be the name of a field manager, in which one "*" may stand for any text`,
		`controllers.managedResource.keepFieldsOf[3]: Invalid value: "": must be the name of a field manager, in which one "*" may stand for any text`,
		`controllers.managedResource.keepFieldsOf[4]: Invalid value: "*a*": must be the name of a field manager, in which one "*" may stand for any text`}},
	"secret size zero": {"controllers: {managedResource: {maxSecretSize: 0}}", []string{
		`controllers.managedResource.maxSecretSize: Invalid value: "0": must be above 0`}},
	"secret size absurd": {"controllers: {managedResource: {maxSecretSize: 2Gi}}", []string{
		`controllers.managedResource.maxSecretSize: Invalid value: "2Gi": must be at most 1Gi`}},
	"cluster identity with a colon": {`controllers: {clusterID: "a:b"}`, []string{
		`controllers.clusterID: Invalid value: "a:b": must not contain a colon, which ends it in the origin annotation`}},
	"secret size negative": {"controllers: {managedResource: {maxSecretSize: -1Mi}}", []string{
		`controllers.managedResource.maxSecretSize: Invalid value: "-1Mi": must be above 0`}},
	"namespace selectors": {"controllers: {networkPolicy: {namespaceSelectors: [{}, {matchExpressions: [{key: a, operator: Is}]}]}}", []string{
		`controllers.networkPolicy.namespaceSelectors[1].matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`}},
	"ingress selector": {`controllers: {networkPolicy: {ingressControllerSelector: {podSelector: {matchExpressions: [{key: a, operator: In}]}}}}`, []string{
		"controllers.networkPolicy.ingressControllerSelector.podSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"}},
	"empty namespace of critical components": {`controllers: {nodeCriticalComponents: {enabled: true, namespaces: [a, ""]}}`, []string{
		`controllers.nodeCriticalComponents.namespaces[1]: Required value: must not be empty`}},
	"delays below zero": {"controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: -2s, maxDelay: -1s}}", []string{
		`controllers.nodeAgentReconciliationDelay.maxDelay: Invalid value: "-1s": must be at least 0s`,
		`controllers.nodeAgentReconciliationDelay.minDelay: Invalid value: "-2s": must be at least 0s`}},
	"delays crossed": {"controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: 6m}}", []string{
		`controllers.nodeAgentReconciliationDelay.minDelay: Invalid value: "6m0s": must be at most maxDelay, which is 5m0s`}},
	"token requestor": {"controllers: {tokenRequestor: {enabled: true, concurrentSyncs: 0}}", []string{
		"controllers.tokenRequestor.concurrentSyncs: Invalid value: 0: must be at least 1"}},
	"self-managed certificates": {"server: {webhooks: {tls: {serverCertDir: /tls, selfManaged: {dnsNames: [a_b, '*.example.org']}}}}", []string{
		"server.webhooks.tls.selfManaged: Forbidden: remove it, or serverCertDir: the certificate comes from one of them",
		`server.webhooks.tls.selfManaged.dnsNames[0]: Invalid value: "a_b": ` + strings.Join(validation.IsDNS1123Subdomain("a_b"), ""),
		"server.webhooks.tls.selfManaged.secretName: Required value: must be set",
		"server.webhooks.tls.selfManaged.secretNamespace: Required value: must be set"}},
	"self-managed certificates without names": {"server: {webhooks: {tls: {selfManaged: {secretNamespace: a, secretName: b}}}}", []string{
		"server.webhooks.tls.selfManaged.dnsNames: Required value: must have the names by which API servers reach the webhooks"}},
	"namespaces of tokens": {`controllers: {tokenRequestor: {enabled: true, serviceAccountNamespaces: [a, ""], targetSecretNamespaces: [A]}}`, []string{
		`controllers.tokenRequestor.serviceAccountNamespaces[1]: Invalid value: "": must be the name of a namespace`,
		`controllers.tokenRequestor.targetSecretNamespaces[0]: Invalid value: "A": must be the name of a namespace`}},
	"tolerations of highly available pods": {"webhooks: {highAvailabilityConfig: {defaultNotReadyTolerationSeconds: -1, defaultUnreachableTolerationSeconds: -2}}", []string{
		"webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds: Invalid value: -1: must be at least 0",
		"webhooks.highAvailabilityConfig.defaultUnreachableTolerationSeconds: Invalid value: -2: must be at least 0"}},
	"who may delete": {`webhooks: {manualDeletionProtection: {enabled: true, allowedUsers: [a, ""], allowedGroups: [""]}}`, []string{
		"webhooks.manualDeletionProtection.allowedGroups[0]: Required value: must not be empty",
		"webhooks.manualDeletionProtection.allowedUsers[1]: Required value: must not be empty"}},
	"node agent authorizer": {`webhooks: {nodeAgentAuthorizer: {enabled: true, machineNamespace: ""}}`, []string{
		`webhooks.nodeAgentAuthorizer.machineNamespace: Invalid value: "": must not be empty; leave the field out if there is no such namespace`}},
	"scheduler name": {`webhooks: {podSchedulerName: {enabled: true, schedulerName: ""}}`, []string{
		"webhooks.podSchedulerName.schedulerName: Required value: must not be empty"}},
	"token expiration": {"webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 599}}", []string{
		"webhooks.projectedTokenMount.expirationSeconds: Invalid value: 599: must be at least 600"}},
}

func TestValidation(t *testing.T) {
	for name, test := range invalidFiles {
		t.Run(name, func(t *testing.T) {
			if got := problemsOf(t, minimal+test.file); !slices.Equal(got, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestValidationOfLeaderElection(t *testing.T) {
	for file, want := range map[string]string{
		"": "leaderElection.resourceNamespace: Required value: name the namespace of the lease, or set leaderElection.leaderElect to false",
		"{resourceNamespace: a, leaseDuration: 10s}": `leaderElection.leaseDuration: Invalid value: "10s": must be above renewDeadline, which is 10s`,
		"{resourceNamespace: a, leaseDuration: -1s}": `leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero`,
		"{resourceNamespace: a, renewDeadline: -1s}": `leaderElection.renewDeadline: Invalid value: "-1s": must be greater than zero`,
		"{resourceNamespace: a, renewDeadline: 1s}":  `leaderElection.renewDeadline: Invalid value: "1s": must be at least retryPeriod, which is 2s`,
		"{resourceNamespace: a, retryPeriod: -1s}":   `leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero`,
	} {
		if got := problemsOf(t, header+"leaderElection: "+file); !slices.Contains(got, want) {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", file, strings.Join(got, "\n"), want)
		}
	}
	mustParse(t, header+"leaderElection: {leaderElect: false, leaseDuration: -1s}")
	mustParse(t, header+"leaderElection: {resourceNamespace: a, renewDeadline: 2s, retryPeriod: 2s}")
}

func TestValidationOfLockNameAndKind(t *testing.T) {
	c := mustParse(t, minimal)
	c.LeaderElection.ResourceLock, c.LeaderElection.ResourceName = "", ""
	expectFields(t, Validate(c), "leaderElection.resourceLock", "leaderElection.resourceName")
}

// TestValidationIgnoresWhatIsDisabled checks that settings of disabled features are not checked where the rule is "if enabled".
func TestValidationIgnoresWhatIsDisabled(t *testing.T) {
	mustParse(t, minimal+`
controllers:
  garbageCollector: {syncPeriod: 1s}
  csrApprover: {concurrentSyncs: 0, machineNamespace: ""}
  tokenRequestor: {concurrentSyncs: 0}
webhooks:
  nodeAgentAuthorizer: {machineNamespace: ""}
  podSchedulerName: {schedulerName: ""}
  projectedTokenMount: {expirationSeconds: 1}
`)
}

func TestValidationAcceptsBounds(t *testing.T) {
	mustParse(t, minimal+`
sourceClientConnection: {qps: -1, cacheResyncPeriod: 10s}
server: {webhooks: {port: 65535}, metrics: {port: 0}}
controllers:
  garbageCollector: {enabled: true, syncPeriod: 15s}
  health: {concurrentSyncs: 1, syncPeriod: 15s, otherKinds: FullStatus, progressingThreshold: 1ns}
  managedResource: {concurrentSyncs: 1, syncPeriod: 15s, maxSecretSize: 1}
  nodeAgentReconciliationDelay: {enabled: true, minDelay: 5m, maxDelay: 5m}
webhooks:
  highAvailabilityConfig: {defaultNotReadyTolerationSeconds: 0, defaultUnreachableTolerationSeconds: 0}
  projectedTokenMount: {enabled: true, expirationSeconds: 600}
`)
}

// TestValidationWithoutDefaults checks that missing required pointers, which defaulting would set, are reported and cause no
// panic.
func TestValidationWithoutDefaults(t *testing.T) {
	c := &ResourceManagerConfiguration{}
	c.Controllers.GarbageCollector.Enabled = true
	c.Controllers.TokenRequestor.Enabled = true
	c.Controllers.CSRApprover.Enabled = true
	c.Webhooks.PodSchedulerName.Enabled = true
	c.Webhooks.ProjectedTokenMount.Enabled = true
	expectFields(t, Validate(c),
		"controllers.clusterID", "controllers.csrApprover.concurrentSyncs", "controllers.garbageCollector.syncPeriod",
		"controllers.health.concurrentSyncs", "controllers.health.otherKinds", "controllers.health.syncPeriod",
		"controllers.managedResource.concurrentSyncs", "controllers.managedResource.fieldValidation", "controllers.managedResource.managedByLabelValue",
		"controllers.managedResource.maxSecretSize", "controllers.managedResource.syncPeriod",
		"controllers.resourceClass", "controllers.tokenRequestor.concurrentSyncs",
		"leaderElection.leaseDuration", "leaderElection.renewDeadline", "leaderElection.resourceLock",
		"leaderElection.resourceName", "leaderElection.resourceNamespace", "leaderElection.retryPeriod",
		"logFormat", "logLevel", "server.healthProbes", "server.metrics", "sourceClientConnection.cacheResyncPeriod",
		"webhooks.podSchedulerName.schedulerName", "webhooks.projectedTokenMount.expirationSeconds")
}

func expectFields(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Field)
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

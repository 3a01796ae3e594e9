package v1alpha1

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestUnknownAndDuplicateFieldsAndTypes(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"two unknown fields and a broken rule": {
			"foo: 1\ncontrollers: {health: {bar: {deep: 1}, syncPeriod: 1s}}", []string{
				"controllers.health.bar: Forbidden: unknown field: remove it, or use any of checks, concurrentSyncs, otherKinds, progressingThreshold, syncPeriod",
				`controllers.health.syncPeriod: Invalid value: "1s": must be at least 15s`,
				"foo: Forbidden: unknown field: remove it, or use any of apiVersion, controllers, debugging, kind, leaderElection, logFormat, logLevel, server, sourceClientConnection, targetClientConnection, webhooks"}},
		"unknown field in a list": {
			"webhooks: {systemComponentsConfig: {podTolerations: [{operator: Exists}, {operator: Exists, keys: a}]}}", []string{
				"webhooks.systemComponentsConfig.podTolerations[1].keys: Forbidden: unknown field: remove it, or use any of effect, key, operator, tolerationSeconds, value"}},
		"upper and lower case": {"loglevel: info", []string{
			`loglevel: Forbidden: unknown field: upper and lower case matter, write "logLevel"`}},
		"the same key twice": {"logLevel: info\nlogFormat: json\nlogLevel: warn", []string{
			"logLevel: Forbidden: set in line 4 and again in line 6: keep one of them",
			`logLevel: Unsupported value: "warn": supported values: "debug", "info", "error"`}},
		"the same key twice, deep": {"controllers: {networkPolicy: {namespaceSelectors: [{}, {matchLabels: {a: b, a: b}}]}}", []string{
			"controllers.networkPolicy.namespaceSelectors[1].matchLabels.a: Forbidden: set in line 4 and again in line 4: keep one of them"}},
		"wrong types": {"controllers: 1\nwebhooks: [a]\nserver: {webhooks: {port: abc, tls: {serverCertDir: 5}}}\nsourceClientConnection: {namespaces: a, qps: {}}", []string{
			"controllers: Invalid value: 1: must be a mapping with any of the fields cacheSyncTimeout, clusterID, csrApprover, garbageCollector, health, istioClusterConfiguration, managedResource, networkPolicy, nodeAgentReconciliationDelay, nodeCriticalComponents, resourceClass, tokenInvalidator, tokenRequestor",
			`server.webhooks.port: Invalid value: "abc": must be a whole number of at most 64 bits`,
			"server.webhooks.tls.serverCertDir: Invalid value: 5: must be a string; put it in quotes",
			`sourceClientConnection.namespaces: Invalid value: "a": must be a list`,
			"sourceClientConnection.qps: Invalid value: is a mapping, must be a number",
			"webhooks: Invalid value: is a list, must be a mapping with any of the fields crdDeletionProtection, endpointSliceHints, extensionValidation, highAvailabilityConfig, kubernetesServiceHost, manualDeletionProtection, nodeAgentAuthorizer, podKubeAPIServerLoadBalancing, podSchedulerName, podTopologySpreadConstraints, projectedTokenMount, seccompProfile, systemComponentsConfig, tokenInvalidator, vpaInPlaceUpdates"}},
		"wrong scalars": {`
debugging: {enableProfiling: "true"}
controllers: {health: {concurrentSyncs: 1.5, syncPeriod: 60}, managedResource: {maxSecretSize: many}}
sourceClientConnection: {burst: 3000000000, namespaces: [a, null, 1]}
webhooks: {systemComponentsConfig: {nodeSelector: {a: true, b: null}, podNodeSelector: a}}`, []string{
			"controllers.health.concurrentSyncs: Invalid value: 1.5: must be a whole number of at most 64 bits",
			"controllers.health.syncPeriod: Invalid value: 60: must be a duration with its unit, such as 30s or 1h30m",
			`controllers.managedResource.maxSecretSize: Invalid value: "many": must be a quantity, such as 64Mi`,
			`debugging.enableProfiling: Invalid value: "true": must be true or false`,
			"sourceClientConnection.burst: Invalid value: 3000000000: must be a whole number of at most 32 bits",
			"sourceClientConnection.namespaces[1]: Invalid value: is null, must be a string; put it in quotes",
			"sourceClientConnection.namespaces[2]: Invalid value: 1: must be a string; put it in quotes",
			"webhooks.systemComponentsConfig.nodeSelector[a]: Invalid value: true: must be a string; put it in quotes",
			`webhooks.systemComponentsConfig.podNodeSelector: Invalid value: "a": must be a mapping`}},
		"what follows from a wrong type is not reported": {"server: {metrics: 8080}\ntargetClientConnection: {cacheResyncPeriod: x}", []string{
			"server.metrics: Invalid value: 8080: must be a mapping with any of the fields bindAddress, port",
			`targetClientConnection.cacheResyncPeriod: Invalid value: "x": must be a duration with its unit, such as 30s or 1h30m`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problemsOf(t, minimal+test.file); !slices.Equal(got, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestUnusableLeaderElectionHidesItsRules(t *testing.T) {
	got := problemsOf(t, header+"leaderElection: yes")
	if len(got) != 1 || !strings.HasPrefix(got[0], "leaderElection: Invalid value: true: must be a mapping") {
		t.Errorf("got: %q", got)
	}
}

func TestHints(t *testing.T) {
	for file, want := range map[string]string{
		"sourceClientConnection: {namespace: a}":         "sourceClientConnection.namespace: Forbidden: unknown field: use sourceClientConnection.namespaces, which is a list",
		"targetClientConnection: {namespace: a}":         "targetClientConnection.namespace: Forbidden: unknown field: use targetClientConnection.namespaces, which is a list",
		"controllers: {node: {backoff: 10s}}":            "controllers.node: Forbidden: unknown field: the settings of this controller are in controllers.nodeCriticalComponents, such as controllers.nodeCriticalComponents.backoff",
		"controllers: {tokenValidator: {enabled: true}}": "controllers.tokenValidator: Forbidden: unknown field: use controllers.tokenInvalidator",
		"webhooks: {tokenValidator: {enabled: true}}":    "webhooks.tokenValidator: Forbidden: unknown field: use webhooks.tokenInvalidator",
	} {
		if got := problemsOf(t, minimal+file); !slices.Equal(got, []string{want}) {
			t.Errorf("%s\ngot:  %q\nwant: %q", file, got, want)
		}
	}
}

func TestAliasOfManagedResource(t *testing.T) {
	for _, key := range []string{"managedResource", "managedResources"} {
		c := mustParse(t, minimal+"controllers: {"+key+": {concurrentSyncs: 20}}")
		if got := *c.Controllers.ManagedResource.ConcurrentSyncs; got != 20 {
			t.Errorf("%s: concurrentSyncs is %d", key, got)
		}
		want := []string{
			"controllers." + key + ".concurrentSyncs: Invalid value: 0: must be at least 1",
			"controllers." + key + ".foo: Forbidden: unknown field: remove it, or use any of alwaysUpdate, concurrentSyncs, fieldValidation, keepFieldsOf, managedByLabelValue, maxSecretSize, namespaceServiceAccounts, syncPeriod",
		}
		if got := problemsOf(t, minimal+"controllers: {"+key+": {concurrentSyncs: 0, foo: 1}}"); !slices.Equal(got, want) {
			t.Errorf("%s\ngot:  %q\nwant: %q", key, got, want)
		}
	}
	got := problemsOf(t, minimal+"controllers: {managedResource: {concurrentSyncs: 0}, managedResources: {}}")
	want := []string{
		"controllers.managedResource.concurrentSyncs: Invalid value: 0: must be at least 1",
		"controllers.managedResources: Forbidden: set together with controllers.managedResource, although it is only another spelling of that: merge them into controllers.managedResource",
	}
	if !slices.Equal(got, want) {
		t.Errorf("both\ngot:  %q\nwant: %q", got, want)
	}
}

func TestKindAndVersion(t *testing.T) {
	const (
		wrongVersion = `apiVersion: Unsupported value: "v1": supported values: "resourcemanager.config.gardener.cloud/v1alpha1"`
		wrongKind    = `kind: Unsupported value: "Pod": supported values: "ResourceManagerConfiguration"`
	)
	for file, want := range map[string][]string{
		"{apiVersion: v1, kind: Pod, spec: {}}":                                   {wrongVersion, wrongKind},
		"{apiVersion: v1, kind: ResourceManagerConfiguration}":                    {wrongVersion},
		"{apiVersion: resourcemanager.config.gardener.cloud/v1alpha1, kind: Pod}": {wrongKind},
		"leaderElection: {leaderElect: false}": {
			"apiVersion: Required value: must be resourcemanager.config.gardener.cloud/v1alpha1",
			"kind: Required value: must be ResourceManagerConfiguration"},
		"{apiVersion: 1, kind: [], leaderElection: {leaderElect: false}}": {
			"apiVersion: Invalid value: 1: must be a string; put it in quotes",
			"kind: Invalid value: is a list, must be a string; put it in quotes"},
	} {
		if got := problemsOf(t, file); !slices.Equal(got, want) {
			t.Errorf("%s\ngot:  %q\nwant: %q", file, got, want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	const empty = `empty: the file must begin with "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1" and "kind: ResourceManagerConfiguration"`
	const notMapping = `not a configuration: the file must be a mapping that begins with`
	for file, want := range map[string]string{
		"":                      empty,
		"# nothing\n":           empty,
		"---\n":                 empty,
		"null":                  empty,
		"text":                  notMapping,
		"- a":                   notMapping,
		"a: [":                  "not valid YAML: line 1: did not find expected node content",
		"a: b: c":               "not valid YAML: mapping values are not allowed in this context",
		"a:\n\t- b":             "not valid YAML: line 2: found character that cannot start any token",
		"a: *b":                 "not valid YAML: unknown anchor 'b' referenced",
		"\x00\x01":              "not valid YAML: control characters are not allowed",
		"qps: .nan":             "not valid YAML: ",
		"? [a]\n: b":            "not valid YAML: ",
		minimal + "---\na: b\n": "more than one YAML document: only the first would be used; remove the others",
		minimal + "---\na: [\n": "not valid YAML: ",
		"a: &a [*a]":            "too deep or too large: ",
		"a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200): "too deep or too large: ",
		laughs():                             "too deep or too large: ",
		minimal + strings.Repeat("#", 1<<20): "too large: at most 1048576 bytes are read",
	} {
		c, err := Parse([]byte(file))
		if c != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q\ngot:  %v\nwant: %s", file, err, want)
		}
	}
}

// laughs returns a small file whose aliases expand to more than any memory ("billion laughs").
func laughs() string {
	text := "l0: &l0 [" + strings.Repeat("lol,", 9) + "lol]\n"
	for i := range 9 {
		previous, next := string(rune('0'+i)), string(rune('1'+i))
		text += "l" + next + ": &l" + next + " [" + strings.Repeat("*l"+previous+",", 9) + "*l" + previous + "]\n"
	}
	return text
}

func TestReadable(t *testing.T) {
	mustParse(t, "---\n"+minimal+"---\n# nothing more\n")
	mustParse(t, `{"apiVersion":"resourcemanager.config.gardener.cloud/v1alpha1","kind":"ResourceManagerConfiguration","leaderElection":{"leaderElect":false}}`)
	c := mustParse(t, minimal+`
controllers: null
server: {metrics: null}
sourceClientConnection: &client {kubeconfig: a, burst: 1}
targetClientConnection: {<<: *client, burst: 2}
webhooks:
  seccompProfile: {enabled: yes} # a boolean in the YAML that Kubernetes reads
  systemComponentsConfig: {nodeSelector: {a: }}
`)
	if target := c.TargetClientConnection; target.Kubeconfig != "a" || target.Burst != 2 {
		t.Errorf("targetClientConnection: %+v", target)
	}
	if !c.Webhooks.SeccompProfile.Enabled || c.Server.Metrics.Port != 8080 || *c.Controllers.ResourceClass != "resources" {
		t.Errorf("got:\n%s", toYAML(t, c))
	}
	if value, ok := c.Webhooks.SystemComponentsConfig.NodeSelector["a"]; !ok || value != "" {
		t.Errorf("nodeSelector: %v", c.Webhooks.SystemComponentsConfig.NodeSelector)
	}
}

func TestErrorsAreBoundedAndOnOneLineEach(t *testing.T) {
	var file strings.Builder
	file.WriteString(minimal)
	for i := range 60 {
		file.WriteString("unknown" + strings.Repeat("x", i) + ": 1\n")
	}
	got := problemsOf(t, file.String())
	if len(got) != 51 || got[50] != "  and 10 more" {
		t.Errorf("got %d lines, the last one is %q", len(got), got[len(got)-1])
	}
	got = problemsOf(t, minimal+`"a\n  - forged\e[1m": 1`)
	if len(got) != 1 || !strings.HasPrefix(got[0], "a\uFFFD  - forged\uFFFD[1m: Forbidden") {
		t.Errorf("got %q", got)
	}
	got = problemsOf(t, minimal+"logLevel: "+strings.Repeat("a", 100_000))
	if len(got) != 1 || len(got[0]) > 1100 {
		t.Errorf("got %d lines, the first of %d bytes", len(got), len(got[0]))
	}
}

func TestLoad(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "config.yaml")
	if err := os.WriteFile(path, []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil || c.LeaderElection.ResourceNamespace != "garden" {
		t.Errorf("Load returned %+v, %v", c, err)
	}
	if err := os.WriteFile(path, []byte(minimal+"foo: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "configuration file " + path + ": 1 problem:\n  - foo: Forbidden: unknown field"
	if c, err = Load(path); c != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Load returned %v, %v", c, err)
	}
	if err := os.WriteFile(path, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Load(path); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Load returned %v for a large file", err)
	}
	if _, err = Load(filepath.Join(directory, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load returned %v for a missing file", err)
	}
	if _, err = Load(directory); err == nil {
		t.Error("Load accepted a directory")
	}
}

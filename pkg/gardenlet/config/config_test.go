package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/configfile"
)

const minimal = `apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
gardenClientConnection:
  kubeconfigSecret: {name: gardenlet-kubeconfig, namespace: garden}
seedConfig:` + seedConfig

const seedConfig = `
  metadata: {name: one}
  spec:
    provider: {type: local, region: local}
    networks: {pods: 100.96.0.0/11, services: 100.64.0.0/13}
    ingress: {domain: ingress.one.example.org, controller: {kind: nginx}}
    dns:
      provider: {type: local, credentialsRef: {apiVersion: v1, kind: Secret, name: dns, namespace: garden}}
      internal: {type: local, domain: internal.example.org, credentialsRef: {apiVersion: v1, kind: Secret, name: internal, namespace: garden}}
`

func TestLoad(t *testing.T) {
	c, err := Load(filepath.Join("..", "..", "..", "examples", "config", "gardenlet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.SeedConfig.Metadata.Name != "my-seed" || *c.Controllers.Seed.LeaseResyncSeconds != 2 || c.Server.HealthProbes.Port != 2728 ||
		c.Server.Metrics.Port != 2729 || c.LeaderElection.ResourceName != "gardenlet-leader-election" || c.LeaderElection.ResourceNamespace != "garden" {
		t.Errorf("got %+v", c)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "read the configuration file") {
		t.Errorf("for a missing file: %v", err)
	}
}

// TestMistakes checks that one error names all mistakes, each with the path of its field.
func TestMistakes(t *testing.T) {
	if _, err := Parse([]byte(minimal)); err != nil {
		t.Fatalf("the valid configuration is refused: %v", err)
	}
	for name, test := range map[string]struct {
		old, changed string
		want         []string
	}{
		"an unknown field":          {"kind: G", "logLevle: info\nkind: G", []string{`unknown field "logLevle"`}},
		"an unknown field below":    {"metadata: {name: one}", "metadata: {name: one, weight: x}", []string{`unknown field "seedConfig.metadata.weight"`}},
		"a key that is set twice":   {"kind: G", "kind: x\nkind: G", []string{`key "kind" already set`}},
		"another kind":              {"kind: GardenletConfiguration", "kind: Gardenlet", []string{"kind: Unsupported value"}},
		"no Seed":                   {"seedConfig:" + seedConfig, "", []string{"seedConfig: Required value"}},
		"a Seed without a name":     {"{name: one}", "{}", []string{"seedConfig.metadata.name: Required value"}},
		"a Seed that is not valid":  {"pods: 100.96.0.0/11", "pods: everywhere", []string{"seedConfig.spec.networks.pods"}},
		"no access to the garden":   {"{name: gardenlet-kubeconfig, namespace: garden}", "null", []string{"gardenClientConnection.kubeconfigSecret: Required value"}},
		"half a reference":          {"{name: gardenlet-kubeconfig, namespace: garden}", "{name: x}", []string{"gardenClientConnection.kubeconfigSecret.namespace: Required value"}},
		"a feature gate":            {"kind: G", "featureGates: {Unheard: true}\nkind: G", []string{`featureGates[Unheard]: Unsupported value: "Unheard"`}},
		"a wrong type":              {"kind: G", "resources: many\nkind: G", []string{"resources"}},
		"no YAML":                   {"kind: G", "{kind: G", []string{"not YAML"}},
		"two at once":               {"kind: G", "logLevel: loud\nfeatureGates: {Unheard: true}\nkind: G", []string{"logLevel", "featureGates[Unheard]"}},
		"a short validity":          {"  kubeconfigSecret", "  kubeconfigValidity: {validity: 1m}\n  kubeconfigSecret", []string{"gardenClientConnection.kubeconfigValidity.validity"}},
		"a bootstrap without a way": {"kubeconfigSecret", "bootstrapKubeconfig", []string{"kubeconfigSecret: Required value: the Secret for the kubeconfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(minimal, test.old) {
				t.Fatalf("%q is not in the configuration", test.old)
			}
			_, err := Parse([]byte(strings.Replace(minimal, test.old, test.changed, 1)))
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want an error with %q", err, want)
				}
			}
		})
	}
	if _, err := Parse(make([]byte, configfile.MaxBytes+1)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("for a large file: %v", err)
	}
}

// TestRollout checks that the pace of a rollout has defaults for each field, and that meaningless values are refused.
func TestRollout(t *testing.T) {
	const path = "controllers.shoot.rollout."
	for given, test := range map[string]struct {
		budget, maxFailed int
		wrong             []string
	}{
		"{}":                          {budget: 40, maxFailed: 3},
		"null":                        {budget: 40, maxFailed: 3},
		"{budget: 7}":                 {budget: 7, maxFailed: 3},
		"{maxFailed: 1}":              {budget: 40, maxFailed: 1},
		"{budget: 1, maxFailed: 900}": {budget: 1, maxFailed: 900},
		"{budget: 0}":                 {wrong: []string{path + "budget: Invalid value: 0: must be at least 1: set how many ManagedResources"}},
		"{maxFailed: 0}":              {wrong: []string{path + "maxFailed: Invalid value: 0: must be at least 1: set how many Shoots"}},
		"{nodes: 0}":                  {wrong: []string{path + "nodes: Invalid value: 0: must be at least 1: set of how many Shoots"}},
		"{budget: -1, maxFailed: -3}": {wrong: []string{path + "budget: Invalid value: -1", path + "maxFailed: Invalid value: -3"}},
		"{budget: many}":              {wrong: []string{path + "budget"}},
		"{budget: 1.5}":               {wrong: []string{path + "budget"}},
		"{maxfailed: 3}":              {wrong: []string{`unknown field "` + path + `maxfailed"`}},
	} {
		t.Run(given, func(t *testing.T) {
			c, err := Parse([]byte("controllers: {shoot: {rollout: " + given + "}}\n" + minimal))
			for _, want := range test.wrong {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want an error with %q", err, want)
				}
			}
			if len(test.wrong) > 0 {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Controllers.Shoot.Rollout; *got.Budget != test.budget || *got.Nodes != 10 || *got.MaxFailed != test.maxFailed {
				t.Errorf("budget %d, nodes %d, maxFailed %d, want %d, 10 and %d", *got.Budget, *got.Nodes, *got.MaxFailed, test.budget, test.maxFailed)
			}
		})
	}
}

// TestFeatureGates checks that all gates of the list are accepted.
func TestFeatureGates(t *testing.T) {
	gates := "featureGates: {" + strings.Join(FeatureGates(), ": true, ") + ": false}\n"
	c, err := Parse([]byte(gates + minimal))
	if err != nil || len(c.FeatureGates) != 11 {
		t.Errorf("got %d gates and %v", len(c.FeatureGates), err)
	}
}

package decision

import (
	"fmt"
	"strings"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// decided is a decision. want is the name of the Seed or, after a "!", a part of the text without one.
type decided struct {
	name, shoot string
	seeds       seeds
	usage       map[string]int
	profile     string
	strategy    Strategy
	regions     Regions
	want        string
}

const (
	ha       = `spec: {controlPlane: {highAvailability: {failureTolerance: {type: zone}}}}`
	enforce  = `spec: {provider: {type: local, region: europe-west-1, zones: [x]}, settings: {scheduling: {visible: true}, zoneSelection: {mode: Enforce}}}`
	enforceA = `spec: {settings: {scheduling: {visible: true}, zoneSelection: {mode: Enforce}}}`
	prefer   = `spec: {provider: {type: local, region: europe-west-1, zones: [x]}, settings: {scheduling: {visible: true}, zoneSelection: {mode: Prefer}}}`
	preferA  = `spec: {settings: {scheduling: {visible: true}, zoneSelection: {mode: Prefer}}}`
	dns      = `spec: {dns: {defaults: [{type: t, domain: example.org}]}}`
	limit2   = `status: {allocatable: {shoots: "2"}}`
	cloud    = `spec: {provider: {type: cloud, region: europe-west-1}}`
	labelled = `metadata: {labels: {tier: gold}}`
	selector = `spec: {seedSelector: {matchLabels: {tier: gold}}}`
)

var usability = []decided{
	{name: "one seed", seeds: seeds{"a": ""}, want: "a"},
	{name: "no seeds", seeds: seeds{}, want: "!there are no Seeds"},
	{name: "no profile", seeds: seeds{"a": ""}, profile: "none", want: "!its CloudProfile does not exist"},
	{name: "deleted", seeds: seeds{"a": `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}`}, want: "!is being deleted"},
	{name: "not visible", seeds: seeds{"a": `spec: {settings: {scheduling: {visible: false}}}`}, want: "!is not visible"},
	{name: "no settings", seeds: seeds{"a": `spec: {settings: {scheduling: null}}`}, want: "a"},
	{name: "no operation", seeds: seeds{"a": `status: {lastOperation: null}`}, want: "!is not set up yet"},
	{name: "gardenlet unknown", seeds: seeds{"a": `status: {conditions: [{type: GardenletReady, status: Unknown}]}`}, want: "!GardenletReady is not True"},
	{name: "gardenlet false", seeds: seeds{"a": `status: {conditions: [{type: GardenletReady, status: "False"}]}`}, want: "!GardenletReady is not True"},
	{name: "no conditions", seeds: seeds{"a": `status: {conditions: []}`}, want: "!GardenletReady is not True"},
	{name: "no bucket yet", seeds: seeds{"a": `spec: {backup: {provider: p}}`}, want: "!BackupBucketsReady is not True"},
	{name: "bucket ready", seeds: seeds{"a": "spec: {backup: {provider: p}}\nstatus: {conditions: [{type: GardenletReady, status: 'True'}, {type: BackupBucketsReady, status: 'True'}]}"}, want: "a"},
	{name: "bucket not ready", seeds: seeds{"a": "spec: {backup: {provider: p}}\nstatus: {conditions: [{type: GardenletReady, status: 'True'}, {type: BackupBucketsReady, status: 'False'}]}"}, want: "!BackupBucketsReady"},
	{name: "buckets without backup do not count", seeds: seeds{"a": `status: {conditions: [{type: GardenletReady, status: "True"}, {type: BackupBucketsReady, status: "False"}]}`}, want: "a"},
	{name: "emergency stop", seeds: seeds{"a": `metadata: {annotations: {shoot.gardener.cloud/emergency-stop-reconciliations: "true"}}`}, want: "!has disabled shoot reconciliations"},
	{name: "no emergency stop", seeds: seeds{"a": `metadata: {annotations: {shoot.gardener.cloud/emergency-stop-reconciliations: "false"}}`}, want: "a"},
	{name: "another seed is usable", seeds: seeds{"a": `status: {lastOperation: null}`, "b": ""}, want: "b"},
}

var selection = []decided{
	{name: "labels for profile", seeds: seeds{"a": "", "b": labelled}, profile: selector, want: "b"},
	{name: "no labels for profile", seeds: seeds{"a": ""}, profile: selector, want: "!seed selector of the CloudProfile (selector: 'tier=gold')"},
	{name: "labels for shoot", seeds: seeds{"a": "", "b": labelled}, shoot: selector, want: "b"},
	{name: "no labels for shoot", seeds: seeds{"a": ""}, shoot: selector, want: "!seed selector of the Shoot (selector: 'tier=gold')"},
	{name: "expressions", seeds: seeds{"a": "", "b": labelled}, shoot: `spec: {seedSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}}`, want: "a"},
	{name: "both selectors", seeds: seeds{"a": labelled, "b": "metadata: {labels: {tier: gold, x: one}}"}, profile: selector, shoot: `spec: {seedSelector: {matchLabels: {x: one}}}`, want: "b"},
	{name: "invalid selector", seeds: seeds{"a": ""}, shoot: `spec: {seedSelector: {matchExpressions: [{key: tier, operator: Nearly}]}}`, want: "!is not valid"},
	{name: "empty selector", seeds: seeds{"a": ""}, shoot: `spec: {seedSelector: {}}`, want: "a"},
	{name: "another provider", seeds: seeds{"a": cloud}, want: `!does not have a matching provider for "local"`},
	{name: "provider of profile", seeds: seeds{"a": cloud}, profile: `spec: {seedSelector: {providerTypes: [cloud]}}`, strategy: MinimalDistance, want: "a"},
	{name: "any provider of profile", seeds: seeds{"a": cloud}, profile: `spec: {seedSelector: {providerTypes: ["*"]}}`, strategy: MinimalDistance, want: "a"},
	{name: "any provider, same region", seeds: seeds{"a": cloud}, profile: `spec: {seedSelector: {providerTypes: ["*"]}}`, want: "!strategy SameRegion"},
	{name: "provider of shoot", seeds: seeds{"a": cloud, "b": ""}, shoot: `spec: {seedSelector: {providerTypes: [cloud]}}`, strategy: MinimalDistance, want: "a"},
	{name: "shoot narrows profile", seeds: seeds{"a": cloud, "b": ""}, profile: `spec: {seedSelector: {providerTypes: ["*"]}}`, shoot: `spec: {seedSelector: {providerTypes: [cloud]}}`, strategy: MinimalDistance, want: "a"},
	{name: "shoot does not widen profile", seeds: seeds{"a": cloud}, profile: `spec: {seedSelector: {providerTypes: [local]}}`, shoot: `spec: {seedSelector: {providerTypes: ["*"]}}`, strategy: MinimalDistance, want: "!matching provider"},
	{name: "taint", seeds: seeds{"a": `spec: {taints: [{key: k}]}`}, want: "!does not tolerate"},
	{name: "tolerated taint", seeds: seeds{"a": `spec: {taints: [{key: k}]}`}, shoot: `spec: {tolerations: [{key: k}]}`, want: "a"},
	{name: "tolerated with value", seeds: seeds{"a": `spec: {taints: [{key: k, value: v}]}`}, shoot: `spec: {tolerations: [{key: k, value: v}]}`, want: "a"},
	{name: "another value", seeds: seeds{"a": `spec: {taints: [{key: k, value: v}]}`}, shoot: `spec: {tolerations: [{key: k, value: w}]}`, want: "!does not tolerate"},
	{name: "key without the value", seeds: seeds{"a": `spec: {taints: [{key: k, value: v}]}`}, shoot: `spec: {tolerations: [{key: k}]}`, want: "!does not tolerate"},
	{name: "one of two taints", seeds: seeds{"a": `spec: {taints: [{key: k}, {key: l}]}`}, shoot: `spec: {tolerations: [{key: k}]}`, want: "!does not tolerate"},
	{name: "restriction", seeds: seeds{"a": ""}, shoot: `spec: {accessRestrictions: [{name: eu}]}`, want: "!access restrictions"},
	{name: "supported restriction", seeds: seeds{"a": "", "b": `spec: {accessRestrictions: [{name: eu}]}`}, shoot: `spec: {accessRestrictions: [{name: eu, options: {x: "y"}}]}`, want: "b"},
}

var places = []decided{
	{name: "least shoots", seeds: seeds{"a": "", "b": "", "c": ""}, usage: map[string]int{"a": 3, "b": 1, "c": 2}, want: "b"},
	{name: "tie", seeds: seeds{"c": "", "b": ""}, usage: map[string]int{"b": 1, "c": 1}, want: "b"},
	{name: "a place", seeds: seeds{"a": limit2}, usage: map[string]int{"a": 1}, want: "a"},
	{name: "full", seeds: seeds{"a": limit2}, usage: map[string]int{"a": 2}, want: "!available capacity"},
	{name: "more than full", seeds: seeds{"a": limit2}, usage: map[string]int{"a": 3}, want: "!available capacity"},
	{name: "full and free", seeds: seeds{"a": limit2, "b": ""}, usage: map[string]int{"a": 2, "b": 9}, want: "b"},
	{name: "zone failures", shoot: ha, seeds: seeds{"a": `spec: {provider: {type: local, region: europe-west-1, zones: [a, b]}}`, "b": ""}, want: "b"},
	{name: "too few zones", shoot: ha, seeds: seeds{"a": `spec: {provider: {type: local, region: europe-west-1, zones: [a, b]}}`}, want: "!at least 3 zones"},
	{name: "node failures", shoot: `spec: {controlPlane: {highAvailability: {failureTolerance: {type: node}}}}`, seeds: seeds{"a": `spec: {provider: {type: local, region: europe-west-1, zones: [a]}}`}, want: "a"},
	{name: "requested zones", shoot: `spec: {controlPlane: {zones: [a, b]}}`, seeds: seeds{"a": ""}, want: "a"},
	{name: "requested zone is missing", shoot: `spec: {controlPlane: {zones: [a, x]}}`, seeds: seeds{"a": ""}, want: "!all requested control plane zones [a x]"},
	{name: "enforce apart", seeds: seeds{"a": enforce}, want: "!zone selection mode: Enforce"},
	{name: "enforce overlap", seeds: seeds{"a": enforceA}, want: "a"},
	{name: "enforce two seeds", seeds: seeds{"a": enforce, "b": enforceA}, want: "b"},
	{name: "enforce does not matter for zone failures", shoot: ha, seeds: seeds{"a": `spec: {provider: {type: local, region: europe-west-1, zones: [x, y, z]}, settings: {scheduling: {visible: true}, zoneSelection: {mode: Enforce}}}`}, want: "a"},
	{name: "enforce without workers", shoot: `spec: {provider: {type: local, workers: []}}`, seeds: seeds{"a": enforce}, want: "a"},
	{name: "prefer overlap", seeds: seeds{"a": prefer, "b": preferA}, want: "b"},
	{name: "prefer neutral", seeds: seeds{"a": prefer, "b": ""}, usage: map[string]int{"b": 7}, want: "b"},
	{name: "prefer falls back", seeds: seeds{"a": prefer}, want: "a"},
	{name: "domain", shoot: `spec: {dns: {domain: shop.dev.example.org}}`, seeds: seeds{"a": "", "b": dns}, want: "b"},
	{name: "domain of another form", shoot: `spec: {dns: {domain: x.y.shop.example.org}}`, seeds: seeds{"a": "", "b": dns}, want: "!does not support the domain"},
	{name: "domain of the user", shoot: `spec: {dns: {domain: shop.example.com}}`, seeds: seeds{"a": "", "b": dns}, want: "a"},
	{name: "network overlap", seeds: seeds{"a": `spec: {networks: {nodes: 10.1.3.0/24}}`}, want: "!invalid networks: the shoot's nodes 10.1.0.0/16 overlap with the seed's nodes 10.1.3.0/24"},
	{name: "network across uses", seeds: seeds{"a": `spec: {networks: {services: 10.2.0.0/20}}`}, want: "!shoot's pods 10.2.0.0/16 overlap with the seed's services"},
	{name: "defaults of seed", shoot: `spec: {networking: {pods: null}}`, seeds: seeds{"a": "", "b": `spec: {networks: {shootDefaults: {pods: 100.0.0.0/16}}}`}, want: "b"},
	{name: "defaults overlap", shoot: `spec: {networking: {pods: null}}`, seeds: seeds{"a": `spec: {networks: {shootDefaults: {pods: 10.12.0.0/24}}}`}, want: "!overlap with the seed's services"},
	{name: "no range for pods", shoot: `spec: {networking: {pods: null}}`, seeds: seeds{"a": ""}, want: "!neither the shoot nor the seed has a range for the shoot's pods"},
	{name: "without workers no ranges", shoot: `spec: {networking: null, provider: {type: local, workers: []}}`, seeds: seeds{"a": ""}, want: "a"},
	{name: "networks of status", shoot: `status: {networking: {nodes: ["10.11.4.0/24"]}}`, seeds: seeds{"a": ""}, want: "!overlap with the seed's pods"},
	{name: "dual stack", shoot: `status: {networking: {pods: ["10.2.0.0/16", "2001:db8::/64"]}}`, seeds: seeds{"a": `spec: {networks: {pods: "2001:db8::/48"}}`}, want: "!2001:db8::/64 overlap"},
	{name: "not a range", shoot: `spec: {networking: {pods: many}}`, seeds: seeds{"a": ""}, want: "!the shoot's pods are not a range"},
}

func region(name string) string {
	return fmt.Sprintf("spec: {provider: {type: local, region: %s}}", name)
}

var distances = []decided{
	{name: "another region", seeds: seeds{"a": region("asia-1")}, want: "!strategy SameRegion"},
	{name: "testing", shoot: `spec: {purpose: testing}`, seeds: seeds{"a": region("asia-1"), "b": ""}, usage: map[string]int{"b": 1}, want: "a"},
	{name: "testing with distance", strategy: MinimalDistance, shoot: `spec: {purpose: testing}`, seeds: seeds{"a": region("asia-1"), "b": ""}, usage: map[string]int{"b": 1}, want: "a"},
	{name: "testing, another provider", shoot: "spec: {purpose: testing, seedSelector: {providerTypes: ['*']}}", seeds: seeds{"a": cloud}, want: `!is not of the provider "local"`},
	{name: "production", shoot: `spec: {purpose: production}`, seeds: seeds{"a": region("asia-1"), "b": ""}, usage: map[string]int{"b": 1}, want: "b"},
	{name: "own region by name", strategy: MinimalDistance, seeds: seeds{"a": region("europe-west-2"), "b": ""}, usage: map[string]int{"b": 1}, want: "b"},
	{name: "same continent by name", strategy: MinimalDistance, seeds: seeds{"a": region("asia-south-1"), "b": region("europe-north-1")}, usage: map[string]int{"b": 1}, want: "b"},
	{name: "own provider first", strategy: MinimalDistance, shoot: "spec: {seedSelector: {providerTypes: ['*']}}", seeds: seeds{"a": cloud, "b": ""}, usage: map[string]int{"b": 1}, want: "b"},
	{name: "all ties", strategy: MinimalDistance, seeds: seeds{"a": region("europe-west-2"), "b": region("europe-west-3")}, usage: map[string]int{"a": 1}, want: "b"},
	{name: "configured", strategy: MinimalDistance, regions: Regions{Distances: map[string]int{"europe-west-1": 0, "x": 1, "far": 5}}, seeds: seeds{"a": region("far"), "b": region("x")}, want: "b"},
	{name: "configured own region", strategy: MinimalDistance, regions: Regions{Distances: map[string]int{"europe-west-1": 0, "x": 1}}, seeds: seeds{"a": region("x"), "b": ""}, want: "b"},
	{name: "not configured seed", strategy: MinimalDistance, regions: Regions{Distances: map[string]int{"far": 5000}}, seeds: seeds{"a": region("europe-west-2"), "b": region("far")}, want: "b"},
	{name: "configured for none", strategy: MinimalDistance, regions: Regions{Distances: map[string]int{"z": 5}}, seeds: seeds{"a": region("asia-1"), "b": region("europe-west-2")}, want: "b"},
	{name: "unreadable", strategy: MinimalDistance, regions: Regions{Err: fmt.Errorf("the distances are wrong")}, seeds: seeds{"a": ""}, want: "!the distances are wrong"},
	{name: "unreadable does not matter", regions: Regions{Err: fmt.Errorf("the distances are wrong")}, seeds: seeds{"a": ""}, want: "a"},
	{name: "too far", strategy: MinimalDistance, seeds: seeds{"a": region(strings.Repeat("q", 600))}, want: "!least distance"},
}

func TestDecide(t *testing.T) {
	for group, tests := range map[string][]decided{"usability": usability, "selection": selection, "places": places, "distances": distances} {
		for _, test := range tests {
			t.Run(group+"/"+test.name, func(t *testing.T) {
				question := &Question{
					Shoot: parse[corev1beta1.Shoot](t, shootText, test.shoot), Seeds: test.seeds.list(t), Usage: test.usage, Project: "dev",
					Strategy: test.strategy, Regions: test.regions,
				}
				if test.profile != "none" {
					question.Profile = parse[corev1beta1.CloudProfile](t, test.profile)
				}
				got := Decide(question)
				if part, none := strings.CutPrefix(test.want, "!"); none {
					if got.Seed != "" || !strings.Contains(got.Text(), part) {
						t.Errorf("got seed %q and %q, want a text with %q", got.Seed, got.Text(), part)
					}
				} else if got.Seed != test.want {
					t.Errorf("got seed %q and %q, want %s", got.Seed, got.Text(), test.want)
				}
			})
		}
	}
}

// TestText checks that Seeds with one reason are grouped, and that a long list is shortened.
func TestText(t *testing.T) {
	refused := map[string]string{"z": "is full"}
	for i := range 7 {
		refused[fmt.Sprintf("seed-%d", i)] = "is small"
	}
	want := "0/8 seed cluster candidate(s) are eligible for scheduling: {z => is full; seed-0, seed-1, seed-2, seed-3, seed-4 and 2 more => is small}"
	if got := (Answer{Refused: refused}).Text(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

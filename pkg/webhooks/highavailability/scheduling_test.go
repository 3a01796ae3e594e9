package highavailability

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

func TestZones(t *testing.T) {
	const zoned = `requiredDuringSchedulingIgnoredDuringExecution:
  nodeSelectorTerms:
  - matchExpressions:
    - key: topology.kubernetes.io/zone
      operator: In
      values:
      - a
      - b`
	for name, test := range map[string]struct {
		namespace map[string]string
		pod, want string
	}{
		"failures are tolerated":        {map[string]string{key + "zones": "b,a", key + "failure-tolerance-type": "zone"}, "", zoned},
		"no failures are tolerated":     {map[string]string{key + "zones": "b,a", key + "failure-tolerance-type": ""}, "", zoned},
		"pinned":                        {map[string]string{key + "zones": "b,a", key + "zone-pinning": "true"}, "", zoned},
		"pinned by another true value":  {map[string]string{key + "zones": "b,a", key + "zone-pinning": "1"}, "", zoned},
		"blanks, double and empty ones": {map[string]string{key + "zones": " b, ,a,,b", key + "zone-pinning": "true"}, "", zoned},
		"not pinned":                    {map[string]string{key + "zones": "b,a", key + "zone-pinning": "false"}, "", ""},
		"nothing said about pinning":    {map[string]string{key + "zones": "b,a"}, "", ""},
		"no zones":                      {map[string]string{key + "zones": " ,", key + "zone-pinning": "true"}, "", ""},
		"other requirements stay, of zones none does": {
			map[string]string{key + "zones": "a,b", key + "zone-pinning": "true"},
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
				"{matchExpressions: [{key: topology.kubernetes.io/zone, operator: NotIn, values: [z]}, {key: arch, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}, {matchExpressions: [{key: gpu, operator: Exists}]}]}}}",
			`requiredDuringSchedulingIgnoredDuringExecution:
  nodeSelectorTerms:
  - matchExpressions:
    - key: arch
      operator: Exists
    - key: topology.kubernetes.io/zone
      operator: In
      values:
      - a
      - b
    matchFields:
    - key: metadata.name
      operator: In
      values:
      - node-1
  - matchExpressions:
    - key: gpu
      operator: Exists
    - key: topology.kubernetes.io/zone
      operator: In
      values:
      - a
      - b`,
		},
	} {
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			got := world{namespace: test.namespace}.admitted(t, manifest(kind, "", "", "replicas: 1", test.pod))
			if got := part(t, got, "spec", "template", "spec", "affinity", "nodeAffinity"); got != test.want {
				t.Errorf("%s, %s: the affinity is\n%s\nwant\n%s", name, kind, got, test.want)
			}
		}
	}
}

// constraint returns the short form of a constraint in the tests: its topology, whenUnsatisfiable, and its domains.
func constraint(topology, otherwise, domains, hash, selector string) string {
	text := "- labelSelector:\n    matchLabels:\n      app: app\n" + selector
	if hash != "" {
		text += "  matchLabelKeys:\n  - pod-template-hash\n"
	}
	text += "  maxSkew: 1\n"
	if domains != "" {
		text += "  minDomains: " + domains + "\n"
	}
	return text + "  topologyKey: " + topology + "\n  whenUnsatisfiable: " + otherwise + "\n"
}

func TestSpread(t *testing.T) {
	const (
		host, zone      = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
		anyway, enforce = "ScheduleAnyway", "DoNotSchedule"
		tolerance       = key + "failure-tolerance-type"
	)
	type rows [][3]string
	for name, test := range map[string]struct {
		namespace   map[string]string
		annotations string
		replicas    string
		autoscaled  int32
		nodes       int
		want        rows
	}{
		"one replica": {nil, "", "1", 0, 3, nil}, "hibernated": {nil, "", "0", 0, 3, nil},
		"two replicas":                       {nil, "", "2", 0, 3, rows{{host, anyway, ""}}},
		"one zone":                           {map[string]string{key + "zones": "a"}, "", "2", 0, 3, rows{{host, anyway, ""}}},
		"one zone, no failures":              {map[string]string{key + "zones": "a", tolerance: ""}, "", "2", 0, 3, rows{{host, anyway, ""}}},
		"node failures":                      {map[string]string{key + "zones": "a", tolerance: "node"}, "", "2", 0, 3, rows{{host, enforce, "2"}}},
		"node failures, many replicas":       {map[string]string{tolerance: "node"}, "", "7", 0, 3, rows{{host, enforce, "3"}}},
		"node failures, several zones":       {map[string]string{key + "zones": "a,b", tolerance: "node"}, "", "2", 0, 3, rows{{host, enforce, "2"}}},
		"node failures, a single node":       {map[string]string{tolerance: "node"}, "", "2", 0, 1, rows{{host, anyway, ""}}},
		"zone failures":                      {map[string]string{key + "zones": "a,b,c", tolerance: "zone"}, "", "2", 0, 3, rows{{host, enforce, "2"}, {zone, enforce, "2"}}},
		"zone failures, more than zones":     {map[string]string{key + "zones": "a,b,c", tolerance: "zone"}, "", "5", 0, 3, rows{{host, enforce, "3"}, {zone, enforce, "3"}}},
		"zones, nothing about failures":      {map[string]string{key + "zones": "a,b"}, "", "3", 0, 3, rows{{host, anyway, ""}, {zone, enforce, "2"}}},
		"zones, no failures":                 {map[string]string{key + "zones": "a,b", tolerance: ""}, "", "3", 0, 3, rows{{host, anyway, ""}}},
		"different hosts":                    {nil, key + `host-spread: "true"`, "2", 0, 3, rows{{host, enforce, "2"}}},
		"different hosts, a single node":     {nil, key + `host-spread: "true"`, "2", 0, 1, rows{{host, anyway, ""}}},
		"autoscaled to many":                 {map[string]string{key + "zones": "a,b,c", tolerance: "zone"}, "", "2", 6, 3, rows{{host, enforce, "3"}, {zone, enforce, "3"}}},
		"autoscaled to few, more than those": {map[string]string{key + "zones": "a,b,c", tolerance: "zone"}, "", "3", 2, 3, rows{{host, enforce, "3"}, {zone, enforce, "3"}}},
	} {
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			w := world{namespace: test.namespace, nodes: test.nodes}
			if test.autoscaled > 0 {
				w.autoscaler = &autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: test.autoscaled, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: "apps/v1", Kind: kind, Name: "app",
				}}
			}
			var want strings.Builder
			for _, row := range test.want {
				if kind == "Deployment" {
					want.WriteString(constraint(row[0], row[1], row[2], "hash", "      more: pod\n"))
				} else {
					want.WriteString(constraint(row[0], row[1], row[2], "", ""))
				}
			}
			got := w.admitted(t, manifest(kind, "", test.annotations, "replicas: "+test.replicas, ""))
			if got := part(t, got, "spec", "template", "spec", "topologySpreadConstraints"); got != strings.TrimSpace(want.String()) {
				t.Errorf("%s, %s: the constraints are\n%s\nwant\n%s", name, kind, got, want.String())
			}
		}
	}
}

// TestOtherConstraints checks that constraints with other topologies stay first. Constraints of a Deployment compare Pods of
// one template, where the API allows that.
func TestOtherConstraints(t *testing.T) {
	const own = `topologySpreadConstraints: [
  {maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {x: z}}},
  {maxSkew: 3, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {x: z}}},
  {maxSkew: 4, topologyKey: rack2, whenUnsatisfiable: ScheduleAnyway},
  {maxSkew: 5, topologyKey: rack3, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchExpressions: [{key: pod-template-hash, operator: Exists}]}}]`
	for _, replicas := range []string{"1", "2"} {
		got := part(t, world{nodes: 2}.admitted(t, manifest("Deployment", "", "", "replicas: "+replicas, own)), "spec", "template", "spec", "topologySpreadConstraints")
		keys := strings.Count(got, "matchLabelKeys")
		rack := strings.Index(got, "topologyKey: rack\n")
		switch {
		case replicas == "1" && (keys != 2 || !strings.Contains(got, "maxSkew: 2")):
			t.Errorf("one replica: the constraints are\n%s", got)
		case replicas == "2" && (keys != 2 || strings.Contains(got, "maxSkew: 2") || rack < 0 || rack > strings.Index(got, "kubernetes.io/hostname")):
			t.Errorf("two replicas: the constraints are\n%s", got)
		}
	}
}

package networkpolicy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

func namespace(name, role string, shoot *gardencorev1beta1.Shoot) Namespace {
	return Namespace{Name: name, Labels: map[string]string{"gardener.cloud/role": role}, Shoot: shoot}
}

// TestPlan checks the plan for each namespace: "bundle", "held" or "deleted".
func TestPlan(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{Networking: &gardencorev1beta1.Networking{Pods: ptr.To("10.9.0.0/16")}}}
	servers := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:443")}
	emitted := func(namespaces ...string) (keys []flow.Key) {
		for _, name := range namespaces {
			keys = append(keys, flow.Key{Namespace: "garden", Name: "network-policies-" + name})
		}
		return keys
	}
	for name, test := range map[string]struct {
		in   Inputs
		want []string
	}{
		"nothing": {Inputs{APIServers: servers}, nil},
		"all kinds": {Inputs{APIServers: servers, Namespaces: []Namespace{
			namespace("garden", "garden", nil), namespace("kube-system", "", nil), namespace("extension-a", "extension", nil),
			namespace("istio-system", "istio-system", nil), namespace("shoot--a--b", "shoot", shoot),
		}}, []string{"bundle extension-a", "bundle istio-system", "bundle shoot--a--b"}},
		"a shoot whose Cluster is not known": {Inputs{APIServers: servers, Namespaces: []Namespace{
			namespace("shoot--a--b", "shoot", nil), namespace("extension-a", "extension", nil),
		}, Emitted: emitted("shoot--a--b")}, []string{"bundle extension-a", "held shoot--a--b"}},
		"API servers that are not known": {Inputs{Namespaces: []Namespace{namespace("extension-a", "extension", nil)}, Emitted: emitted("extension-a")},
			[]string{"held extension-a"}},
		"namespaces that are gone": {Inputs{APIServers: servers, Namespaces: []Namespace{namespace("extension-a", "extension", nil)},
			Emitted: emitted("extension-a", "extension-b")}, []string{"bundle extension-a", "deleted extension-b"}},
		"a namespace that is none of them any more": {Inputs{APIServers: servers, Namespaces: []Namespace{namespace("extension-a", "", nil)},
			Emitted: emitted("extension-a")}, []string{"deleted extension-a"}},
		"a further selector": {Inputs{APIServers: servers, Namespaces: []Namespace{namespace("more", "own", nil)},
			AdditionalSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"gardener.cloud/role": "own"}}}}, []string{"bundle more"}},
		"a Seed that goes": {Inputs{APIServers: servers, Deleting: true, Namespaces: []Namespace{namespace("extension-a", "extension", nil)},
			Emitted: emitted("extension-a")}, []string{"deleted extension-a"}},
		"a Seed that goes and hosts a control plane": {Inputs{APIServers: servers, Deleting: true, Namespaces: []Namespace{
			namespace("extension-a", "extension", nil), namespace("shoot--a--b", "shoot", nil),
		}, Emitted: emitted("extension-a", "shoot--a--b")}, []string{"bundle extension-a", "held shoot--a--b"}},
		"a Garden": {Inputs{APIServers: servers, OfGarden: true, Namespaces: []Namespace{
			namespace("garden", "garden", nil), namespace("kube-system", "", nil), namespace("shoot--a--b", "shoot", shoot),
		}}, []string{"bundle network-policies", "bundle shoot--a--b"}},
		"a Garden that goes": {Inputs{APIServers: servers, OfGarden: true, Deleting: true, Namespaces: []Namespace{
			namespace("garden", "garden", nil), namespace("shoot--a--b", "shoot", shoot),
		}, Emitted: emitted("shoot--a--b")}, []string{"deleted shoot--a--b"}},
		"a Seed that becomes a garden": {Inputs{APIServers: servers, Released: true, Namespaces: []Namespace{namespace("extension-a", "extension", nil)},
			Emitted: emitted("extension-a", "extension-b")}, []string{"released extension-a", "released extension-b"}},
		"a Garden that goes, and its cluster stays a seed": {Inputs{OfGarden: true, Deleting: true, Released: true, Namespaces: []Namespace{
			namespace("garden", "garden", nil), namespace("shoot--a--b", "shoot", nil),
		}, Emitted: emitted("shoot--a--b")}, []string{"released shoot--a--b"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Namespace = "garden"
			test.in.Networks = networkpolicies.Networks{Pods: []string{"100.96.0.0/11"}, Services: []string{"100.64.0.0/13"}}
			plan, err := Plan(test.in)
			if err != nil {
				t.Fatal(err)
			}
			if err := plan.Validate(); err != nil {
				t.Error(err)
			}
			if got := describe(plan); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func describe(plan flow.Plan) []string {
	var lines []string
	add := func(what string, key flow.Key) {
		lines = append(lines, what+" "+strings.TrimPrefix(key.Name, "network-policies-"))
	}
	for _, bundle := range plan.Bundles {
		add("bundle", bundle.Key)
	}
	for _, wait := range plan.Waits {
		for _, key := range wait.Holds {
			add("held", key)
		}
	}
	for _, tombstone := range plan.Tombstones {
		if tombstone.Release == flow.ReleaseBundle {
			add("released", tombstone.Key)
			continue
		}
		add("deleted", tombstone.Key)
	}
	slices.Sort(lines)
	return lines
}

func TestReduceCluster(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "shoot--a--b"},
		"spec": map[string]any{"shoot": map[string]any{
			"spec":   map[string]any{"networking": map[string]any{"pods": "10.9.0.0/16"}, "region": "x"},
			"status": map[string]any{"networking": map[string]any{"nodes": []any{"10.8.0.0/16"}}},
		}},
	}}
	kept, ok := reduceCluster(object).(*cluster)
	if !ok || kept.Name != "shoot--a--b" || kept.shoot == nil || *kept.shoot.Spec.Networking.Pods != "10.9.0.0/16" ||
		len(kept.shoot.Status.Networking.Nodes) != 1 || kept.shoot.Spec.Region != "" {
		t.Errorf("got %+v", kept)
	}
	if kept, ok := reduceCluster(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}).(*cluster); !ok || kept.shoot != nil {
		t.Errorf("a Cluster without a Shoot: %+v", kept)
	}
}

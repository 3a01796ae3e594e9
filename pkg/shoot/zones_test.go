package shoot

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// placed sets the placement to the one in the plan, like applying the namespace does.
func placed(in *Inputs) { in.Placement = &Placement{Tolerance: in.tolerance(), Zones: in.zones()} }

func TestZones(t *testing.T) {
	const node, zone = corev1beta1.FailureToleranceTypeNode, corev1beta1.FailureToleranceTypeZone
	seed := func(zones ...string) func(*Inputs) {
		return func(in *Inputs) { in.Seed.Spec.Provider.Zones = zones }
	}
	declared := func(zones ...string) func(*Inputs) {
		return func(in *Inputs) { in.Shoot.Spec.ControlPlane = &corev1beta1.ControlPlane{Zones: zones} }
	}
	placedIn := func(tolerance string, zones ...string) func(*Inputs) {
		return func(in *Inputs) { in.Placement = &Placement{Tolerance: tolerance, Zones: zones} }
	}
	for name, test := range map[string]struct {
		change []func(*Inputs)
		count  int
		want   []string
	}{
		"new":                              {change: []func(*Inputs){seed("a", "b", "c", "d")}, count: 1},
		"new, tolerates a node":            {change: []func(*Inputs){seed("a", "b", "c", "d"), available(node)}, count: 1},
		"new, tolerates a zone":            {change: []func(*Inputs){seed("a", "b", "c", "d"), available(zone)}, count: 3},
		"the Seed has fewer zones":         {change: []func(*Inputs){seed("b", "a"), available(zone)}, want: []string{"a", "b"}},
		"the Seed has no zones":            {change: []func(*Inputs){seed()}},
		"declared":                         {change: []func(*Inputs){seed("a", "b"), declared("b")}, want: []string{"b"}},
		"the Seed gets zones later":        {change: []func(*Inputs){placedIn(""), seed("a", "b", "c")}},
		"the Seed gets more zones":         {change: []func(*Inputs){placedIn("", "y"), seed("a", "b", "c", "y")}, want: []string{"y"}},
		"the Seed loses the zone":          {change: []func(*Inputs){placedIn("", "y"), seed("a", "b", "c")}, want: []string{"y"}},
		"the Seed loses one of the zones":  {change: []func(*Inputs){placedIn("zone", "x", "y", "z"), seed("a", "x", "z"), available(zone)}, want: []string{"x", "y", "z"}},
		"another zone is declared later":   {change: []func(*Inputs){placedIn("", "y"), seed("y", "z"), declared("z")}, want: []string{"y"}},
		"none to node":                     {change: []func(*Inputs){placedIn("", "y"), seed("a", "b", "y"), available(node)}, want: []string{"y"}},
		"none to zone":                     {change: []func(*Inputs){placedIn("", "y"), seed("a", "b", "y"), available(zone)}, want: []string{"a", "b", "y"}},
		"none to zone, the Seed lost it":   {change: []func(*Inputs){placedIn("", "y"), seed("a", "b"), available(zone)}, want: []string{"a", "b", "y"}},
		"zone to none keeps where etcd is": {change: []func(*Inputs){placedIn("zone", "x", "y", "z"), seed("x", "y", "z")}, want: []string{"x", "y", "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := known(t, test.change...)
			got := in.zones()
			if test.count > 0 {
				if len(got) != test.count || !slices.IsSorted(got) {
					t.Fatalf("got %v, want %d zones, sorted", got, test.count)
				}
				placed(&in)
				seed("e", "f", "g")(&in)
				test.want = got
			}
			if again := in.zones(); !slices.Equal(got, test.want) || !slices.Equal(again, got) {
				t.Errorf("got %v, and %v after the namespace is applied, want %v", got, again, test.want)
			}
		})
	}
}

// TestZonesDiffer checks that not all control planes choose the same zone.
func TestZonesDiffer(t *testing.T) {
	chosen := map[string]bool{}
	for _, uid := range strings.Split("abcdefghijklmnop", "") {
		in := known(t)
		in.Owner.UID += "-" + types.UID(uid)
		chosen[strings.Join(in.zones(), ",")] = true
	}
	if len(chosen) != len(known(t).Seed.Spec.Provider.Zones) {
		t.Errorf("16 control planes choose the zones %v", chosen)
	}
}

// TestZonesAreNotGuessed checks that a namespace that lost its annotations keeps its last revision, and does not get other zones.
func TestZonesAreNotGuessed(t *testing.T) {
	in := up(t, func(in *Inputs) { in.Placement = nil })
	plan := planOf(t, in)
	held := slices.ContainsFunc(plan.Waits, func(wait flow.Wait) bool { return slices.Contains(wait.Holds, in.key(bundleNamespace)) })
	if !held || slices.ContainsFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == in.key(bundleNamespace) }) {
		t.Errorf("the namespace is not held: %v", plan.Waits)
	}
}

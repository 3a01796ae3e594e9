package seed

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// operated are the parts that the garden operator deploys in a seed that is the garden.
var operated = []string{
	definitionsManagedResources, definitionsEtcd, definitionsAutoscaling, bundleResourceManager, bundleAutoscaler, bundleEtcdOperator,
	bundleNetworkPolicies,
}

// upAndRunning returns the inputs of a Seed whose bundles exist.
func upAndRunning(t *testing.T) Inputs {
	t.Helper()
	in := known(t, func(*Inputs) {})
	for _, bundle := range planOf(t, in).Bundles {
		in.Emitted = append(in.Emitted, bundle.Key)
	}
	return in
}

// TestSeedBecomesTheGarden checks that gardenlet hands over what the garden operator deploys, and deletes nothing of it.
// If the garden is deleted, gardenlet plans the same parts again, and adopts them.
func TestSeedBecomesTheGarden(t *testing.T) {
	before := planOf(t, upAndRunning(t))
	in := upAndRunning(t)
	in.IsGarden = true
	plan := planOf(t, in)
	for _, name := range operated {
		key := in.key(name)
		if !slices.ContainsFunc(before.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == key }) {
			t.Errorf("a seed has no part %s", name)
		}
		if !slices.ContainsFunc(plan.Tombstones, func(t flow.Tombstone) bool { return t.Key == key && t.Release == flow.ReleaseBundle }) {
			t.Errorf("%s is not released", name)
		}
	}
	for _, tombstone := range plan.Tombstones {
		if tombstone.Release == "" {
			t.Errorf("%s is deleted", tombstone.Key)
		}
	}
	for name, left := range map[string]string{bundleNamespaces: "Namespace garden", definitionsExtensions: "CustomResourceDefinition dnsrecords.extensions.gardener.cloud"} {
		i := slices.IndexFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == in.key(name) })
		_, its, _ := strings.Cut(left, " ")
		if slices.ContainsFunc(plan.Bundles[i].Objects, func(object client.Object) bool { return object.GetName() == its }) ||
			!slices.ContainsFunc(plan.Bundles[i].Removes, func(key object.Key) bool { return key.Kind+" "+key.Name == left }) {
			t.Errorf("%s has %s of the operator, or must not lose it", name, left)
		}
	}
	in = upAndRunning(t) // the garden is deleted, and the seed stays
	for _, name := range operated {
		in.Emitted = slices.DeleteFunc(in.Emitted, func(key flow.Key) bool { return key == in.key(name) })
	}
	if after := planOf(t, in); !slices.EqualFunc(after.Bundles, before.Bundles, func(a, b flow.Bundle) bool { return a.Key == b.Key }) {
		t.Error("the parts are not planned again")
	}
}

// TestIstioOfTheGarden checks who has the control plane of Istio in a seed that exposes its API servers through Istio: the operator only if the
// garden does so, too. The gateways of the seed remain.
func TestIstioOfTheGarden(t *testing.T) {
	in := upAndRunning(t)
	in.Seed.Annotations = map[string]string{constants.AnnotationSeedExposure: string(exposure.Istio)}
	in.IsGarden = true
	for _, name := range []string{definitionsIstio, bundleIstioControlPlane, bundleIstio} {
		in.Emitted = append(in.Emitted, in.key(name))
	}
	for name, want := range map[string]string{definitionsIstio: "released", bundleIstioControlPlane: "released", bundleIstio: "kept"} {
		for _, ofOperator := range []bool{false, true} {
			in.HasIstio = ofOperator
			plan, is := planOf(t, in), "kept"
			for _, tombstone := range plan.Tombstones {
				if tombstone.Key == in.key(name) && tombstone.Release == flow.ReleaseBundle {
					is = "released"
				}
			}
			if wanted := map[bool]string{false: "kept", true: want}[ofOperator]; is != wanted {
				t.Errorf("%s is %s, want %s, if the operator has Istio: %t", name, is, wanted, ofOperator)
			}
		}
	}
}

// TestVersionOfTheOperator checks that a seed that is the garden reports another version of the operator.
func TestVersionOfTheOperator(t *testing.T) {
	for name, test := range map[string]struct {
		isGarden bool
		version  string
		want     bool
	}{
		"another version":          {true, "v9.9.9", true},
		"the same version":         {true, "v1.2.3", false},
		"a version not reported":   {true, "", false},
		"a seed that is no garden": {false, "v9.9.9", false},
	} {
		in := upAndRunning(t)
		in.Version, in.IsGarden, in.OperatorVersion = "v1.2.3", test.isGarden, test.version
		plan := planOf(t, in)
		reported := slices.ContainsFunc(plan.Waits, func(wait flow.Wait) bool {
			return wait.Name == "operator-version" && strings.Contains(wait.Reason, "v9.9.9") && strings.Contains(wait.Reason, "v1.2.3") && len(wait.Holds) == 0
		})
		if reported != test.want {
			t.Errorf("%s: reported %t", name, reported)
		}
	}
}

// TestPartsThatOthersManageAreKept checks that a part that the Seed had, and does not have any more, stays without
// keeping the Seed in progress.
func TestPartsThatOthersManageAreKept(t *testing.T) {
	in := upAndRunning(t)
	in.IdentityOrigin = "garden"
	plan := planOf(t, in)
	if !slices.Contains(plan.Keeps, in.key(bundleIdentity)) {
		t.Errorf("kept %v", plan.Keeps)
	}
	if slices.ContainsFunc(plan.Waits, func(wait flow.Wait) bool { return slices.Contains(wait.Holds, in.key(bundleIdentity)) }) {
		t.Errorf("waits %v", plan.Waits)
	}
}

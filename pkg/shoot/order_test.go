package shoot

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestHibernationOrder checks that components stop after the components that use them, and start before them. The plan of a
// hibernated Shoot contains no bundle that only the stopped resource-manager of the shoot could apply, and no bundle waits for
// one.
func TestHibernationOrder(t *testing.T) {
	for number, setting := range settings() {
		in := up(t, setting)
		waits := func(bundle flow.Bundle, on string, until ...resourcesv1alpha1.DependencyUntil) bool {
			return slices.ContainsFunc(bundle.Spec.DependsOn, func(dependency resourcesv1alpha1.Dependency) bool {
				return dependency.Name == on && slices.Contains(until, dependency.Until)
			})
		}
		found := 0
		for _, bundle := range planOf(t, in).Bundles {
			var order []string // the bundles after which this one stops, or starts
			until := []resourcesv1alpha1.DependencyUntil{resourcesv1alpha1.UntilHealthy, resourcesv1alpha1.UntilRolledOut}
			switch {
			case in.hibernated() && bundle.Name == bundleAPIServer:
				order, until = []string{bundleControllerManager, bundleResourceManager}, until[1:]
			case in.hibernated() && (bundle.Name == bundleEtcdMain || bundle.Name == bundleEtcdEvents):
				order, until = []string{bundleAPIServer}, until[1:]
			case bundle.Name == bundleAPIServer:
				order = []string{bundleEtcdMain, bundleEtcdEvents}
			case bundle.Name == bundleResourceManager && !in.hibernated():
				order = []string{bundleAPIServer}
			case bundle.Name == bundleControllerManager && !in.hibernated():
				order = []string{bundleAPIServer, bundleResourceManager}
			}
			for _, on := range order {
				found++
				if !waits(bundle, on, until...) {
					t.Errorf("setting %b: %s does not wait for %s: %v", number, bundle.Name, on, bundle.Spec.DependsOn)
				}
			}
			if in.hibernated() && isOfShoot(bundle.Name) {
				t.Errorf("setting %b: the plan of a Shoot that hibernates has %s", number, bundle.Name)
			}
			for _, dependency := range bundle.Spec.DependsOn {
				if in.hibernated() && isOfShoot(dependency.Name) {
					t.Errorf("setting %b: %s waits for %s, which is never applied", number, bundle.Name, dependency.Name)
				}
			}
		}
		if found < 4 {
			t.Errorf("setting %b: found only %d of the dependencies", number, found)
		}
	}
}

// TestNoCycleWhileTheOrderTurns checks that ManagedResources never wait for each other while a Shoot falls asleep or wakes up, which
// turns the order of its programs: not even between two writes, when the resource-managers see only a part of the new order.
func TestNoCycleWhileTheOrderTurns(t *testing.T) {
	for _, test := range []struct {
		name string
		in   Inputs
	}{
		{"extensions", known(t, withExtensions(lifecycles...))}, {"workers", known(t, withExtensions("after-after"), withWorkers)},
	} {
		s := newSimulation(t, test.in)
		s.settle()
		s.store.applied = func(mr *resourcesv1alpha1.ManagedResource) {
			if path := s.pathTo(client.ObjectKeyFromObject(mr), client.ObjectKeyFromObject(mr), map[client.ObjectKey]bool{}); path != nil {
				t.Errorf("%s: after a write of %s, these wait for each other: %v", test.name, mr.Name, path)
			}
		}
		for _, asleep := range []bool{true, false} {
			s.in.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: &asleep}
			s.in.Shoot.Generation++
			s.in.ClusterOf = s.in.generation()
			s.settle()
			if s.in.Shoot.Status.IsHibernated != asleep || len(s.result.Pending) > 0 {
				t.Errorf("%s: asleep %t, want %t; %v", test.name, s.in.Shoot.Status.IsHibernated, asleep, s.result.Pending)
			}
		}
	}
}

// pathTo returns a path of dependencies between ManagedResources, or nil if there is none.
func (s *simulation) pathTo(from, to client.ObjectKey, seen map[client.ObjectKey]bool) []string {
	mr := s.store.mrs[from]
	if mr == nil || seen[from] {
		return nil
	}
	seen[from] = true
	for _, need := range mr.Spec.DependsOn {
		next := need.NameFrom(mr.Namespace)
		if need.For == resourcesv1alpha1.ForCreation && mr.Status.SecretsDataChecksum != nil {
			continue
		}
		if next == to {
			return []string{from.Name, to.Name}
		}
		if path := s.pathTo(next, to, seen); path != nil {
			return append([]string{from.Name}, path...)
		}
	}
	return nil
}

// TestTokensRollNothing checks that a renewed token changes no bundle. An expired token does not change one either, for example
// the first token of a Shoot whose images are slow, or the tokens of a Shoot that has hibernated for long: its program keeps
// its revision until there is a new token.
func TestTokensRollNothing(t *testing.T) {
	in := up(t)
	before := planOf(t, in)
	for name, renewal := range map[string]time.Duration{"renewed": 24 * time.Hour, "about to be renewed": -time.Hour, "expired": -48 * time.Hour} {
		in := up(t)
		for secret := range in.Tokens {
			in.Tokens[secret] = in.Now.Add(renewal)
		}
		after := planOf(t, in)
		if len(after.Tombstones) > 0 || after.Inputs != before.Inputs {
			t.Errorf("%s: tombstones %v, inputs %s instead of %s", name, after.Tombstones, after.Inputs, before.Inputs)
		}
		held := map[string]bool{}
		for _, wait := range after.Waits {
			for _, key := range wait.Holds {
				held[key.Name] = true
			}
		}
		if want := name == "expired"; held[bundleResourceManager] != want || held[bundleControllerManager] != want || len(held) != map[bool]int{true: 2}[want] {
			t.Errorf("%s: these bundles are held: %v", name, held)
		}
		for _, bundle := range before.Bundles {
			if held[bundle.Name] {
				continue
			}
			at := slices.IndexFunc(after.Bundles, func(other flow.Bundle) bool { return other.Key == bundle.Key })
			if at < 0 || bundleDigest(t, after.Bundles[at]) != bundleDigest(t, bundle) {
				t.Errorf("%s: bundle %s is missing or has changed", name, bundle.Name)
			}
		}
	}
}

func bundleDigest(t *testing.T, bundle flow.Bundle) string {
	t.Helper()
	digest, err := flow.InputsDigest(bundle.Objects, bundle.Spec, bundle.Labels)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

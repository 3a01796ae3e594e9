package shoot

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// lifecycles are the types of extensions of the simulations, one for each lifecycle: when they are reconciled and when
// they are deleted.
var lifecycles = []string{"before-before", "before-after", "after-before", "after-after", "workers-before", "workers-after"}

// other is a further type with the default lifecycle.
const other = "other"

var strategies = map[string]corev1beta1.ControllerResourceLifecycleStrategy{
	"before": corev1beta1.BeforeKubeAPIServer, "after": corev1beta1.AfterKubeAPIServer, "workers": corev1beta1.AfterWorker,
}

// withExtensions adds extensions of the given types, references and DNS records to a Shoot. The moment at which an extension
// would be migrated is the opposite of that of its deletion.
func withExtensions(types ...string) func(*Inputs) {
	return func(in *Inputs) {
		extended(in)
		registration := registered("x")
		in.Shoot.Spec.Extensions = nil
		for _, kind := range lifecycles {
			reconciled, deleted, _ := strings.Cut(kind, "-")
			migrated := map[string]string{"before": "after", "after": "before"}[deleted]
			registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{
				Kind: corev1beta1.KindExtension, Type: kind, WorkerlessSupported: ptr.To(true), Lifecycle: &corev1beta1.ControllerResourceLifecycle{
					Reconcile: ptr.To(strategies[reconciled]), Delete: ptr.To(strategies[deleted]), Migrate: ptr.To(strategies[migrated]),
				},
			})
		}
		for _, kind := range types {
			in.Shoot.Spec.Extensions = append(in.Shoot.Spec.Extensions, corev1beta1.Extension{Type: kind})
		}
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{
			Kind: corev1beta1.KindExtension, Type: other, WorkerlessSupported: ptr.To(true),
		})
		in.Registrations = []corev1beta1.ControllerRegistration{registration}
	}
}

// precedes names the bundles whose objects must not exist any more when those of another one are deleted. It repeats the
// order of docs/shoot.md, not that of the table of contents.
func (s *simulation) precedes(name string) []string {
	if !s.in.Deleting {
		return nil
	}
	if s.in.hasWorkers() {
		if before := s.precedesOfNodes(name); before != nil {
			return before
		}
	}
	early, all, content := []string{prefixExtension + other}, []string{prefixExtension + other}, []string(nil)
	for _, kind := range lifecycles {
		if all = append(all, prefixExtension+kind); strings.HasSuffix(kind, "-before") {
			early = append(early, prefixExtension+kind)
		}
	}
	if !s.in.forced() {
		content = slices.DeleteFunc(slices.Clone(inEachCluster), func(name string) bool {
			return name == bundleResourceManagerRBAC || name == bundleNamespaces || name == bundleControllerManagerRBAC // kept
		})
	}
	_, wanted := strings.CutPrefix(name, prefixExtension)
	wanted = wanted && slices.Contains(s.in.extensions(), strings.TrimPrefix(name, prefixExtension))
	switch {
	case name == bundleAPIServer:
		return slices.Concat(early, content, []string{bundleControllerManager, bundleResourceManager, bundleAPIServerAutoscaler})
	case name == bundleResourceManager:
		return slices.Concat(early, content, []string{bundleControllerManager})
	case name == bundleControllerManager:
		return slices.Concat(early, content)
	case name == bundleEtcdMain, name == bundleEtcdEvents, strings.HasPrefix(name, prefixRecord), wanted && strings.HasSuffix(name, "-after"):
		return []string{bundleAPIServer}
	case name == bundleAPIServerService:
		return []string{bundleAPIServer, bundleInternalRecord, bundleExternalRecord}
	case name == bundleAccess, name == bundleReferenced:
		return all
	}
	return nil
}

// story is the life of a Shoot before it is deleted.
type story struct {
	name string
	// born are the bundles that are broken from the beginning, broken those that are when it is deleted.
	born, broken []string
	// passes is how many passes the creation gets, 0 for all that it needs. Forced makes the user force the deletion.
	passes         int
	asleep, forced bool
	// pairs is set if the story also runs for Shoots with two extensions.
	pairs bool
}

func stories() []story {
	all := []story{
		{name: "awake", pairs: true}, {name: "asleep", asleep: true, pairs: true}, {name: "forced", forced: true, pairs: true},
		{name: "asleep, forced", asleep: true, forced: true, pairs: true},
	}
	for passes := range 6 {
		all = append(all, story{name: fmt.Sprintf("after %d passes", passes+1), passes: passes + 1},
			story{name: fmt.Sprintf("after %d passes, forced", passes+1), passes: passes + 1, forced: true})
	}
	for _, name := range []string{bundleEtcdMain, bundleEtcdEvents, bundleAPIServer, bundleResourceManager, bundleControllerManager} {
		all = append(all, story{name: name + " never worked", born: []string{name}, pairs: true}, story{name: name + " never worked, forced", born: []string{name}, forced: true})
	}
	for _, broken := range [][]string{{bundleAPIServer}, {bundleResourceManager}, {bundleAPIServer, bundleResourceManager}, {bundleEtcdMain, bundleEtcdEvents, bundleAPIServer}} {
		name := strings.Join(broken, " and ") + " broken, forced"
		all = append(all, story{name: name, broken: broken, forced: true}, story{name: "asleep, " + name, broken: broken, forced: true, asleep: true, pairs: true})
	}
	return all
}

// TestDeletionEnds deletes Shoots with all lifecycles of extensions, alone and in pairs, in all states of their control
// planes. Nothing is left, nothing is deleted before what needs it, and nothing is created only to be deleted.
func TestDeletionEnds(t *testing.T) {
	sets := [][]string{nil}
	for i, one := range lifecycles {
		sets = append(sets, []string{one})
		for _, other := range lifecycles[i+1:] {
			sets = append(sets, []string{one, other})
		}
	}
	for _, types := range sets {
		awake := newSimulation(t, known(t, withExtensions(types...)))
		awake.settle()
		for _, story := range stories() {
			if len(types) > 1 && !story.pairs {
				continue
			}
			t.Run(strings.Join(append(types, story.name), ", "), func(t *testing.T) {
				s := awake.live(t, story)
				s.delete(story)
			})
		}
	}
	for _, kind := range lifecycles {
		awake := newSimulation(t, known(t, withExtensions(kind, other)))
		awake.settle()
		for _, story := range stories()[:4] {
			t.Run(kind+" is removed just before, "+story.name, func(t *testing.T) {
				s := awake.live(t, story)
				s.in.Shoot.Spec.Extensions = s.in.Shoot.Spec.Extensions[1:]
				s.delete(story)
			})
		}
	}
}

// live returns a simulation of the Shoot of another one, which has been created, at the moment before its deletion. Stories that differ only in
// their deletion share the life before it.
func (s *simulation) live(t *testing.T, story story) *simulation {
	t.Helper()
	life := fmt.Sprint(story.born, story.passes, story.asleep)
	if s.lives[life] == nil {
		s.lives[life] = s.liveOnce(t, story)
	}
	next := s.lives[life].copied(t)
	for _, name := range story.broken {
		next.broken[name] = true
	}
	return next
}

func (s *simulation) liveOnce(t *testing.T, story story) *simulation {
	t.Helper()
	if len(story.born) > 0 || story.passes > 0 {
		s = newSimulation(t, s.in)
		s.in.Shoot, s.in.Placement = s.in.Shoot.DeepCopy(), nil
	} else {
		s = s.copied(t)
	}
	for _, name := range story.born {
		s.broken[name] = true
	}
	switch {
	case story.passes > 0:
		for range story.passes {
			s.pass()
		}
	default:
		s.settle()
	}
	if len(story.born) == 0 && story.passes == 0 {
		if want := len(planOf(s.T, s.in).Bundles); len(s.store.mrs) != want || len(s.waits) > 0 {
			s.Fatalf("%d of %d bundles exist, and the resource-managers wait for %v", len(s.store.mrs), want, s.waits)
		}
	}
	if story.asleep {
		hibernate(&s.in)
		s.in.Shoot.Generation++
		s.in.ClusterOf = s.in.generation()
		s.settle()
		if !s.in.Shoot.Status.IsHibernated {
			s.Fatalf("the Shoot does not hibernate: %v", s.waits)
		}
	}
	return s
}

// delete deletes the Shoot, and checks that nothing is left.
func (s *simulation) delete(story story) {
	s.Helper()
	s.in.Deleting, s.in.Shoot.DeletionTimestamp = true, &metav1.Time{Time: now}
	if story.forced {
		forced(&s.in)
	}
	cleaned(&s.in)
	s.settle()
	if len(s.store.mrs) > 0 || len(s.faults) > 0 {
		s.Errorf("%d bundles are left after %v were deleted; broken rules: %v", len(s.store.mrs), s.gone, s.faults)
		s.explain()
	}
	for key := range s.objects {
		if guarded(key) {
			s.Errorf("%s is left", key)
		}
	}
}

// explain logs what the simulation waits for.
func (s *simulation) explain() {
	s.Helper()
	for _, reasons := range []map[string]string{s.waits} {
		for name, why := range reasons {
			s.Logf("the resource-manager holds %s: %s", name, why)
		}
	}
	for key, why := range s.result.Pending {
		s.Logf("%s is pending: %s", key.Name, why)
	}
	for key, why := range s.result.Problems {
		s.Logf("%s has a problem: %s", key.Name, why)
	}
	for _, wait := range s.result.Plan.Waits {
		s.Logf("%s waits: %s (%v)", wait.Name, wait.Reason, wait.Holds)
	}
}

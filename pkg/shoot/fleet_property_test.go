package shoot

import (
	"slices"
	"testing"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestShootsDoNotDisturbEachOther creates, changes and breaks Shoots of a Seed with 200 of them, while the Seed itself is
// unhealthy from time to time. It checks that only its own components decide on its health, and that the status of Shoots
// to which nothing happens is never written. Then another version of gardenlet and a change of the Seed are rolled out,
// while users go on to change Shoots. It checks that the budget is held after each change, although the Seed was not ready
// before.
func TestShootsDoNotDisturbEachOther(t *testing.T) {
	f := newFleet(t)
	f.seed.Status.Gardener = &corev1beta1.Gardener{ID: "a", Name: "gardenlet", Version: "v1"}
	for range fleetSize {
		f.create()
	}
	f.settle(f.members...)
	busy := map[*member]bool{}
	before := map[*member]int{}
	for _, m := range f.members {
		if last := m.shoot.Status.LastOperation; last.Type != "Create" || last.State != "Succeeded" {
			t.Fatalf("%s: %+v", m.shoot.Name, last)
		}
		before[m] = m.writes
	}
	for round := range 12 {
		f.disturb(busy)
		f.check(round%4 != 1)
		if round%4 == 1 {
			for _, m := range f.members {
				m.pass()
			}
			f.check(true)
		}
		for m := range busy {
			m.pass()
			m.judge()
		}
		f.clock.SetTime(f.clock.Now().Add(20 * time.Second))
	}
	for _, m := range f.members {
		if _, known := before[m]; known && !busy[m] && m.writes != before[m] {
			t.Errorf("the status of %s, to which nothing has happened, was written %d times: %+v", m.shoot.Name, m.writes-before[m], m.shoot.Status.LastOperation)
		}
	}
	f.rollOut("v2", func() {})
	f.rollOut("v2", func() { f.seed.Spec.Provider.Zones = []string{"a", "b"} })
}

// disturb creates, changes, breaks and repairs Shoots.
func (f *fleet) disturb(busy map[*member]bool) {
	busy[f.create()] = true
	for range 3 {
		m := f.members[f.random.IntN(20)] // nothing happens to the others
		busy[m] = true
		switch f.random.IntN(3) {
		case 0:
			m.shoot.Spec.Region += "x"
			m.shoot.Generation++
		case 1:
			m.broken = !m.broken
		default:
			m.shoot.Annotations = map[string]string{"dashboard": m.shoot.Annotations["dashboard"] + "x"}
		}
	}
}

// rollOut changes what all Shoots depend on. The Seed is not ready at first. It ends when all Shoots have the change.
func (f *fleet) rollOut(version string, change func()) {
	f.Helper()
	for _, m := range f.members {
		m.broken = false
	}
	f.settle(f.members...)
	f.upgrade(version)
	f.check(false)
	for _, m := range f.members {
		m.pass()
	}
	change()
	f.seed.Status.Gardener = &corev1beta1.Gardener{ID: "a", Name: "gardenlet", Version: version}
	f.check(true)
	program := f.program()
	missing := func() (count int) {
		for _, m := range f.members {
			if !m.hasChange(program) {
				count++
			}
		}
		return count
	}
	for range 150 {
		if missing() == 0 {
			return
		}
		for i, at := range f.random.Perm(len(f.members))[:10] {
			m := f.members[at]
			if i == 0 {
				m.shoot.Spec.Region += "x"
				m.shoot.Generation++
			}
			m.pass()
		}
		for _, m := range f.members {
			if m.isRolling() && f.random.IntN(2) == 0 {
				m.judge()
				m.pass()
			}
		}
		f.woken()
		f.clock.SetTime(f.clock.Now().Add(20 * time.Second))
	}
	f.Errorf("after 150 rounds, %d of %d Shoots do not have the change", missing(), len(f.members))
}

// woken reconciles the Shoots that the pacer enqueues.
func (f *fleet) woken() {
	for f.queue.Len() > 0 {
		request, _ := f.queue.Get()
		f.queue.Done(request)
		for _, m := range f.members {
			if m.shoot.Name == request.Name {
				m.pass()
			}
		}
	}
}

// isRolling reports whether a ManagedResource of a member has not been judged.
func (m *member) isRolling() bool {
	return slices.ContainsFunc(m.known, func(mr resourcesv1alpha1.ManagedResource) bool { return mr.Status.ObservedGeneration != mr.Generation })
}

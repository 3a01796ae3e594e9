package live

import (
	"context"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// maxSingleReads is the number of objects up to which they are always read one by one. A page of a list has five times
	// as many.
	maxSingleReads = 100
	// listedShare determines when listing all objects of a kind costs less than reading some of them: when they are more
	// than one in listedShare.
	listedShare = 2
)

// renewal contains the objects of a watch that have to be examined again, because their checks have changed.
type renewal struct {
	watch *kindWatch
	names []types.NamespacedName
}

// clearHealth makes an observation equal to one of the metadata alone.
func (o *Observation) clearHealth() {
	o.Examined, o.borrowed, o.Health, o.counted = false, false, nil, nil
}

// clearVerdicts clears the verdicts of the objects of origins, and returns the names of these objects. If listing all
// objects costs less than reading these, it changes nothing and returns false.
func (s *store) clearVerdicts(origins []string) (names []types.NamespacedName, few bool) {
	wanted := make(map[unique.Handle[string]]bool, len(origins))
	for _, origin := range origins {
		wanted[unique.Make(origin)] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, record := range s.objects {
		if wanted[record.origin] {
			names = append(names, name)
		}
	}
	if len(names) > maxSingleReads && len(names)*listedShare > len(s.objects) {
		return nil, false
	}
	for _, name := range names {
		observation := s.objects[name].observation()
		observation.clearHealth()
		s.objects.put(name, &observation)
	}
	return names, true
}

// renewed stores an object that was examined again, unless the watch has shown a later state in the meantime, or its
// checks have changed again. In the latter case, another renewal is in progress.
func (s *store) renewed(name types.NamespacedName, epoch uint64, observation *Observation) {
	s.mu.Lock()
	before := s.objects.get(name)
	if before == nil || before.UID != observation.UID || s.observer.isOutdated(epoch, observation) ||
		!surelyNewer(observation.ResourceVersion, before.ResourceVersion) && !completes(before, observation) {
		s.mu.Unlock()
		return
	}
	difference := s.put(name, observation)
	s.mu.Unlock()
	s.notify(name, difference)
}

// renew reads objects, and stores their health according to the current checks. If they cannot be read, it restarts the
// watch.
func (v *View) renew(ctx context.Context, r renewal) {
	epoch := v.Examiner.Epoch()
	refs := make([]object.Ref, 0, len(r.names))
	for _, name := range r.names {
		gvk := r.watch.gk.WithVersion(r.watch.version)
		refs = append(refs, object.Ref{GroupVersionKind: gvk, Namespace: name.Namespace, Name: name.Name})
	}
	failed := false
	for key, state := range v.reader.Read(ctx, refs) {
		switch state.Presence {
		case Present:
			if state.Observation.ManagedBy == v.ManagedBy {
				r.watch.store.renewed(types.NamespacedName{Namespace: interned(key.Namespace), Name: key.Name}, epoch, &state.Observation)
			}
		case Absent: // the watch shows it
		default:
			failed = true
		}
	}
	if failed {
		v.restart(r.watch)
	}
}

// restart restarts a watch if it is still in use.
func (v *View) restart(w *kindWatch) {
	v.mu.Lock()
	if v.watches[w.gk] == w {
		w.cancel()
		delete(v.watches, w.gk)
	}
	v.mu.Unlock()
	v.ensure(w.gk.WithVersion(w.version))
}

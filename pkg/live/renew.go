package live

import (
	"context"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// fewObjects is how many objects are read one by one in any case. A page of a list has five times as many.
	fewObjects = 100
	// listedShare is the share of the objects of a kind, as one in this number, from which it costs less to list all of them.
	listedShare = 2
)

// renewal are objects of a watch that have to be examined again, because their checks changed.
type renewal struct {
	watch *kindWatch
	names []types.NamespacedName
}

// forgetHealth leaves an observation as if it were of the metadata alone.
func (o *Observation) forgetHealth() {
	o.Examined, o.borrowed, o.Health, o.counted = false, false, nil, nil
}

// forgetVerdicts takes the verdicts from the objects of origins, and returns these. It changes nothing, and returns false, if
// listing all objects costs less than reading each of them.
func (s *store) forgetVerdicts(origins []string) (names []types.NamespacedName, few bool) {
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
	if len(names) > fewObjects && len(names)*listedShare > len(s.objects) {
		return nil, false
	}
	for _, name := range names {
		observation := s.objects[name].observation()
		observation.forgetHealth()
		s.objects.put(name, &observation)
	}
	return names, true
}

// renewed stores an object as it was read to be examined again, unless the watch has shown more meanwhile, or its checks changed again: then
// another renewal is under way.
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

// renew reads objects, and stores how they are by their present checks. The watch begins again if they cannot be read.
func (v *View) renew(ctx context.Context, r renewal) {
	epoch := v.Examiner.Epoch()
	refs := make([]object.Ref, 0, len(r.names))
	for _, name := range r.names {
		refs = append(refs, object.Ref{GroupVersionKind: r.watch.gk.WithVersion(r.watch.version), Namespace: name.Namespace, Name: name.Name})
	}
	failed := false
	for key, state := range v.reader.Read(ctx, refs) {
		switch state.Presence {
		case Present:
			if state.Observation.ManagedBy == v.ManagedBy {
				r.watch.store.renewed(types.NamespacedName{Namespace: shared(key.Namespace), Name: key.Name}, epoch, &state.Observation)
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

// restart has a watch begin again, if it is still in use.
func (v *View) restart(w *kindWatch) {
	v.mu.Lock()
	if v.watches[w.gk] == w {
		w.cancel()
		delete(v.watches, w.gk)
	}
	v.mu.Unlock()
	v.ensure(w.gk.WithVersion(w.version))
}

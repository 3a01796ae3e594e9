package garbagecollector

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/references"
)

// minimumAge is the minimum age of deleted objects since their last change, as in gardener-resource-manager since their
// creation. Clients create or touch a ConfigMap before they create the workload that references it.
const minimumAge = 10 * time.Minute

// key identifies a ConfigMap or Secret.
type key struct {
	namespace string
	references.Reference
}

// candidate is a ConfigMap or Secret that may be garbage, in the listed state.
type candidate struct {
	key
	uid             types.UID
	resourceVersion string
	// written is when the object was created or last changed.
	written time.Time
	// deleting is set if the object is already being deleted.
	deleting bool
}

// String returns "<kind> <namespace>/<name>".
func (c candidate) String() string { return c.kindName() + " " + c.namespace + "/" + c.Name }

func (c candidate) kindName() string { return kindNames[c.Kind] }

// kindNames are the API kinds of candidates.
var kindNames = map[string]string{references.KindConfigMap: "ConfigMap", references.KindSecret: "Secret"}

// used is the set of referenced objects.
type used map[key]struct{}

// add adds the references of an object.
func (u used) add(namespace string, annotations map[string]string) {
	for annotation, value := range annotations {
		if reference, ok := references.Parse(annotation, value); ok {
			u[key{namespace: namespace, Reference: reference}] = struct{}{}
		}
	}
}

// mature returns the candidates that may be deleted if they are unreferenced: those that are old enough and not being
// deleted.
func mature(candidates []candidate, now time.Time) []candidate {
	return filter(candidates, func(c candidate) bool { return !c.deleting && !now.Before(c.written.Add(minimumAge)) })
}

// unused returns the unreferenced candidates, sorted by kind, namespace and name.
func unused(candidates []candidate, references used) []candidate {
	result := filter(candidates, func(c candidate) bool {
		_, found := references[c.key]
		return !found
	})
	slices.SortFunc(result, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.Name, b.Name))
	})
	return result
}

func filter(candidates []candidate, keep func(candidate) bool) []candidate {
	var result []candidate
	for _, c := range candidates {
		if keep(c) {
			result = append(result, c)
		}
	}
	return result
}

// nextRun returns the delay after a number of failed runs in a row: 10 seconds after the first one, doubled for each
// further one, at most the sync period.
func nextRun(failures int, syncPeriod time.Duration) time.Duration {
	return min(firstRetry<<min(failures-1, 20), syncPeriod)
}

// firstRetry is the delay after the first failed run.
const firstRetry = 10 * time.Second

package controller

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// actionReconcile is the action of all Events, as in gardener-resource-manager.
const actionReconcile = "Reconcile"

// reportedProblems tracks which problems of Services have been reported, so that each is reported once. It is safe for
// concurrent use.
type reportedProblems struct {
	mu        sync.Mutex
	byService map[types.NamespacedName][]netpol.Problem
}

func newReportedProblems() *reportedProblems {
	return &reportedProblems{byService: map[types.NamespacedName][]netpol.Problem{}}
}

// update records the problems of a Service. It returns the new ones, and the number of Services with problems.
func (t *reportedProblems) update(service types.NamespacedName, problems []netpol.Problem) (added []netpol.Problem, services int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, problem := range problems {
		if !slices.Contains(t.byService[service], problem) {
			added = append(added, problem)
		}
	}
	t.byService[service] = problems
	if len(problems) == 0 {
		delete(t.byService, service)
	}
	return added, len(t.byService)
}

// createEvents creates Events about the problems of a Service.
func (r *Reconciler) createEvents(service *corev1.Service, key types.NamespacedName, problems []netpol.Problem) {
	added, services := r.reported.update(key, problems)
	r.Metrics.problems.Set(float64(services))
	if service == nil {
		return
	}
	for _, one := range byReason(added) {
		r.Recorder.Eventf(service, nil, corev1.EventTypeWarning, one.Reason, actionReconcile, "%s", conditiontext.ForEvent(one.Message))
	}
}

// byReason joins problems with the same reason, because the recorder merges Events with the same reason about the same
// version of an object.
func byReason(problems []netpol.Problem) []netpol.Problem {
	var joined []netpol.Problem
	for _, problem := range problems {
		i := slices.IndexFunc(joined, func(other netpol.Problem) bool { return other.Reason == problem.Reason })
		if i < 0 {
			joined = append(joined, problem)
		} else {
			joined[i].Message += " " + problem.Message
		}
	}
	return joined
}

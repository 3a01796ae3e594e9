package controller

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/message"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// actionReconcile is the action of all Events, as in gardener-resource-manager.
const actionReconcile = "Reconcile"

// told remembers which problems of Services were told, so that each is told once. It is safe for concurrent use.
type told struct {
	mu        sync.Mutex
	byService map[types.NamespacedName][]netpol.Problem
}

func newTold() *told { return &told{byService: map[types.NamespacedName][]netpol.Problem{}} }

// news takes in the problems of a Service, and returns those that it did not have before, and how many Services have problems.
func (t *told) news(service types.NamespacedName, problems []netpol.Problem) (news []netpol.Problem, services int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, problem := range problems {
		if !slices.Contains(t.byService[service], problem) {
			news = append(news, problem)
		}
	}
	t.byService[service] = problems
	if len(problems) == 0 {
		delete(t.byService, service)
	}
	return news, len(t.byService)
}

// tell tells the owner of a Service what is wrong.
func (r *Reconciler) tell(service *corev1.Service, key types.NamespacedName, problems []netpol.Problem) {
	news, services := r.told.news(key, problems)
	r.Metrics.troubled(services)
	for _, problem := range news {
		if service != nil {
			r.Recorder.Eventf(service, nil, corev1.EventTypeWarning, problem.Reason, actionReconcile, "%s", message.ForEvent(problem.Message))
		}
	}
}

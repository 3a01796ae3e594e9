package managedresource

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// progressAfter is how long applying may take before the status says that it is going on. Most changes are applied in
// less, and then the status is written once, with the outcome.
const progressAfter = 3 * time.Second

// progressOf returns what the condition says while objects are being applied. As in gardener-resource-manager, the reason
// and message of a failure or of a pending deletion stay until there is news.
func progressOf(before resourcesv1alpha1.Condition) verdict {
	switch before.Reason {
	case resourcesv1alpha1.ReasonApplyFailed, resourcesv1alpha1.ReasonDeletionFailed, resourcesv1alpha1.ReasonDeletionPending:
		return verdict{resourcesv1alpha1.ConditionProgressing, before.Reason, before.Message}
	}
	return verdict{resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonApplyProgressing,
		"The resources are currently being reconciled."}
}

// hasNews reports whether the ManagedResource or the data of its Secrets changed since they were last applied. While
// something cannot be read, that is what the condition has to say.
func (p *pass) hasNews() bool {
	last := p.mr.Status.SecretsDataChecksum
	return len(p.problems) == 0 &&
		(last == nil || *last != p.checksum || p.mr.Status.ObservedGeneration != p.mr.Generation)
}

// showProgress does the work and, if that applies a change and takes long, says in the status meanwhile that it is going on.
func (p *pass) showProgress(ctx context.Context, work func()) {
	if !p.hasNews() {
		work()
		return
	}
	timer, done := p.Clock.NewTimer(progressAfter), make(chan struct{})
	defer timer.Stop()
	// The work reads the ManagedResource, so what is written goes into a copy until the work is done.
	mr := *p.mr
	shown := &pass{Reconciler: p.Reconciler, mr: &mr, self: p.self}
	var group sync.WaitGroup
	group.Go(func() {
		select {
		case <-timer.C():
			shown.storeProgress(ctx)
		case <-done:
		}
	})
	defer func() {
		close(done)
		group.Wait()
		*p.mr = *shown.mr
	}()
	work()
}

// storeProgress says in the status that objects are being applied, unless it does already. This is for information only:
// if it cannot be written, the outcome tells all the same.
func (p *pass) storeProgress(ctx context.Context) {
	status := p.mr.Status
	status.Conditions = p.conditions(p.checksPending(status.Conditions), progressOf(resourcesv1alpha1.ConditionOf(status.Conditions, resourcesv1alpha1.ResourcesApplied)))
	if equality.Semantic.DeepEqual(status, p.mr.Status) {
		return
	}
	if err := p.storeStatus(ctx, status); err != nil {
		log.FromContext(ctx).V(1).Info("Could not show that objects are being applied", "error", err.Error())
	}
}

package garden

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/breakglass"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

// removedAfter is how long to wait before checking whether the objects of the resource-manager are deleted.
const removedAfter = time.Second

// finish executes the parts of a deletion that are not in the plan, and removes the finalizer of the Garden when everything is deleted. The definitions
// of kinds and the namespace remain, because other objects may be of these kinds and in this namespace.
func (p *pass) finish(ctx context.Context) error {
	r, garden, in := p.reconciler, p.garden, p.in
	if why := in.inUse(); why != "" {
		if why != r.lastRefusal {
			r.events.Eventf(garden, nil, corev1.EventTypeWarning, eventInUse, actionDelete, "%s", why)
			r.lastRefusal = why
		}
		return nil
	}
	if len(in.Emitted) > 0 || len(p.Plan.Waits) > 0 {
		return nil // the watches report their deletion
	}
	left, err := flow.Remaining(ctx, r.uncached, in.Owner, in.Namespace)
	if err != nil || len(left) > 0 {
		return err
	}
	if policies, err := p.policiesLeft(ctx); err != nil || len(policies) > 0 {
		p.Wake.In(removedAfter)
		return err
	}
	if gone, err := p.removeResourceManager(ctx); err != nil || !gone {
		p.Wake.In(removedAfter)
		return err
	}
	if err := flow.DeleteManifests(ctx, r.uncached, r.runtime, in.Namespace, client.MatchingLabels{flow.LabelFlow: FlowName}); err != nil {
		return err
	}
	if err := p.collectGarbage(ctx); err != nil {
		return err
	}
	used, err := p.usedSecrets(ctx)
	if err != nil {
		return err
	}
	if err := r.secrets.CleanUp(ctx, secrets.Wanted{}, nil, used); err != nil {
		return err
	}
	for _, name := range []string{constants.PrefixShootAccess + resourcemanager.Account, ledgerName} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: name}}
		if err := client.IgnoreNotFound(r.runtime.Delete(ctx, secret)); err != nil {
			return err
		}
	}
	r.recorded = false
	r.ledgers.Forget(in.key(ledgerName))
	return r.patch(ctx, garden, func() { controllerutil.RemoveFinalizer(garden, Finalizer) })
}

// usedSecrets reports which Secrets are kept: in a seed, those of Pods that were handed over, until gardenlet has replaced them.
func (p *pass) usedSecrets(ctx context.Context) (func(name string) bool, error) {
	if !p.in.isSeed() {
		return func(string) bool { return false }, nil
	}
	return secrets.ReferredIn(ctx, p.uncached, p.in.Namespace, nil)
}

// removeResourceManager deletes the objects of the resource-manager, which does not delete them itself, and reports whether they no longer exist. If
// ManagedResources of other clients exist, it is kept. In a seed, it was handed over.
func (p *pass) removeResourceManager(ctx context.Context) (gone bool, err error) {
	if p.in.isSeed() {
		return true, nil
	}
	objects, err := p.in.manager()
	if err != nil {
		return false, err
	}
	left, err := breakglass.Remove(ctx, p.runtime, p.uncached, objects)
	if errors.Is(err, breakglass.ErrInUse) {
		p.events.Eventf(p.garden, nil, corev1.EventTypeWarning, eventKept, actionDelete, "the resource-manager is kept in the runtime cluster: %s", err)
		return true, nil
	}
	if len(left) > 0 {
		log.FromContext(ctx).Info("The resource-manager is being deleted", "left", left)
	}
	return len(left) == 0, err
}

// collectGarbage deletes the files of components and the manifests of other flows, such as that of the etcd operator, in the place of the
// resource-manager, which no longer exists. Some of the files have encryption keys. As long as there are ManagedResources anywhere, the
// resource-manager is kept, and its own files with it.
func (p *pass) collectGarbage(ctx context.Context) error {
	if p.in.isSeed() {
		return nil
	}
	switch err := breakglass.NoneLeft(ctx, p.uncached); {
	case errors.Is(err, breakglass.ErrInUse):
		return nil
	case err != nil:
		return err
	}
	for _, kind := range []string{userfiles.Secret, userfiles.ConfigMap} {
		for _, label := range []string{flow.LabelFlow, resourcesv1alpha1.LabelGarbageCollectableReference} {
			if err := flow.DeleteSelected(ctx, p.uncached, p.runtime, kind, p.in.Namespace, client.HasLabels{label}); err != nil {
				return err
			}
		}
	}
	return nil
}

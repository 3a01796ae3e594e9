package breakglass

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// observed is the input of a decision. Objects that do not exist are nil.
type observed struct {
	mr         *resourcesv1alpha1.ManagedResource
	lease      *coordinationv1.Lease
	deployment *appsv1.Deployment
}

// attempt is the last attempt to apply the objects.
type attempt struct {
	// revision that was applied, and the time before which it is not applied again. Another revision is applied
	// immediately.
	revision string
	next     time.Time
}

// decide returns why the objects must be applied, empty if they must not, and when to check again; zero to wait for a
// watch event. since is when the flow started to check. decide is pure.
func (c *Controller) decide(seen observed, since, now time.Time) (why string, next time.Time) {
	if !c.responsible(seen.mr) {
		return "", time.Time{}
	}
	why, next = flow.BreakGlass(seen.lease, since, c.options.StaleAfter, now)
	if c.options.Installs && seen.deployment == nil {
		why = "the resource-manager is not installed"
	}
	switch {
	case why == "":
		return "", next
	case seen.deployment != nil && seen.deployment.Status.ReadyReplicas > 0:
		return "", next // or when a watch reports that the last replica is no longer ready
	case c.last.revision == revisionOf(seen.mr) && now.Before(c.last.next):
		return "", c.last.next
	}
	return why + ", and has no ready replica", next
}

// responsible reports whether the flow may apply the objects of a ManagedResource. A suspended one is left to users.
// One that is being deleted together with its objects needs no repair. If its objects are kept, the resource-manager
// must run to remove its finalizer.
func (c *Controller) responsible(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr != nil && mr.Labels[flow.LabelFlow] == c.options.Flow &&
		!resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore]) &&
		(mr.DeletionTimestamp == nil || ptr.Deref(mr.Spec.KeepObjects, false))
}

// revisionOf identifies the revision of a ManagedResource by the names of its Secrets, which contain a digest of their
// content.
func revisionOf(mr *resourcesv1alpha1.ManagedResource) string {
	names := make([]string, 0, len(mr.Spec.SecretRefs))
	for _, reference := range mr.Spec.SecretRefs {
		names = append(names, reference.Name)
	}
	return strings.Join(names, ",")
}

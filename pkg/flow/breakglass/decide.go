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

// observed is what a decision is made from. What does not exist is nil.
type observed struct {
	mr         *resourcesv1alpha1.ManagedResource
	lease      *coordinationv1.Lease
	deployment *appsv1.Deployment
}

// attempt is the last one to apply the objects.
type attempt struct {
	// revision that was applied, and the time before which it is not applied again. Another revision need not wait.
	revision string
	next     time.Time
}

// decide returns why the objects have to be applied, empty if they do not, and when to look again; zero for when a watch shows a change.
// It is pure. The flow has looked since a time.
func (c *Controller) decide(seen observed, since, now time.Time) (why string, next time.Time) {
	if !c.responsible(seen.mr) {
		return "", time.Time{}
	}
	why, next = flow.BreakGlass(seen.lease, since, c.options.StaleAfter, now)
	switch {
	case why == "":
		return "", next
	case seen.deployment != nil && seen.deployment.Status.ReadyReplicas > 0:
		return "", next // or when a watch shows that the last replica is not ready any more
	case c.last.revision == revisionOf(seen.mr) && now.Before(c.last.next):
		return "", c.last.next
	}
	return why + ", and has no ready replica", next
}

// responsible reports whether the flow may apply the objects of a ManagedResource. One that is suspended is left to people. One that is being
// deleted together with its objects is on its way out; with objects that are kept, the resource-manager has to live to let it go.
func (c *Controller) responsible(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr != nil && mr.Labels[flow.LabelFlow] == c.options.Flow && !resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore]) &&
		(mr.DeletionTimestamp == nil || ptr.Deref(mr.Spec.KeepObjects, false))
}

// revisionOf names the revision that a ManagedResource has: its Secrets are named after their content.
func revisionOf(mr *resourcesv1alpha1.ManagedResource) string {
	names := make([]string, 0, len(mr.Spec.SecretRefs))
	for _, reference := range mr.Spec.SecretRefs {
		names = append(names, reference.Name)
	}
	return strings.Join(names, ",")
}

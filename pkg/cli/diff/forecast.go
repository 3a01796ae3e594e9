package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/shadow"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
)

// managedByDefault is the value of the managed-by label that a resource-manager sets by default.
const managedByDefault = "gardener"

// Settings are those of the resource-manager that matter. What is empty is found out from the objects that are there.
type Settings struct {
	ClusterID, ManagedBy string
	// CollectsGarbage says that the garbage collector is enabled.
	CollectsGarbage bool
}

// Forecast finds out what a resource-manager would do about a ManagedResource, with further Secrets besides those in the cluster.
func Forecast(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource, secrets []*corev1.Secret, settings Settings,
) (*managedresource.Prospect, *shadow.Cluster, error) {
	source, err := c.Source()
	if err != nil {
		return nil, nil, err
	}
	target, err := c.Target()
	if err != nil {
		return nil, nil, err
	}
	view := live.NewView(live.Options{Objects: target.Objects, Policy: fieldowner.DefaultPolicy(), Clock: c.Clock})
	settings.complete(ctx, mr, view)
	reader := &reader{Client: source, console: c, namespace: mr.Namespace, secrets: secrets, proposed: mr}
	targetReader, err := c.TargetClient()
	if err != nil {
		return nil, nil, err
	}
	cluster := shadow.New(target.Objects, target.Dynamic, target.Schemas, func(user string, groups []string) (dynamic.Interface, error) {
		return c.TargetAs(user, groups)
	})
	reconciler := managedresource.NewReconciler(managedresource.Reconciler{
		Source: reader, Direct: reader, Autoscalers: &tolerant{Reader: targetReader, console: c},
		Objects: target.Objects, Live: view,
		Engine: apply.NewEngineFor(cluster, fieldowner.DefaultPolicy(), c.Clock), Clock: c.Clock,
		Options: managedresource.Options{
			Class: state.ClassOf(mr), ClusterID: settings.ClusterID, ManagedBy: settings.ManagedBy,
			CollectsGarbage: settings.CollectsGarbage, Limits: managedresource.DefaultLimits(),
		},
	})
	prospect, err := reconciler.Preview(ctx, mr.DeepCopy())
	return prospect, cluster, err
}

// complete takes from the objects that are there what the resource-manager marks them with.
func (s *Settings) complete(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, view *live.View) {
	const looked = 20 // one is enough, but some may be gone or somebody else's
	if s.ClusterID == "" || s.ManagedBy == "" {
		refs := snapshot.RefsOf(mr)
		for _, found := range view.Fetch(ctx, refs[:min(len(refs), looked)]) {
			origin, ok := resourcesv1alpha1.ParseOrigin(found.Observation.Origin)
			if !ok || origin.Owner != state.NameOf(mr) {
				continue
			}
			if s.ClusterID == "" {
				s.ClusterID = origin.ClusterID
			}
			if s.ManagedBy == "" {
				s.ManagedBy = found.Observation.ManagedBy
			}
		}
	}
	if s.ManagedBy == "" {
		s.ManagedBy = managedByDefault
	}
}

// errReadOnly is returned to whoever would write.
var errReadOnly = errors.New("a preview writes nothing")

// reader reads from the source cluster, with Secrets and a ManagedResource that are not there yet. It writes nothing. What may not
// be listed everywhere is listed in the ManagedResource's own namespace.
type reader struct {
	client.Client
	console   *console.Console
	namespace string
	secrets   []*corev1.Secret
	proposed  *resourcesv1alpha1.ManagedResource
}

// Get reads an object.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	switch obj := obj.(type) {
	case *corev1.Secret:
		i := slices.IndexFunc(r.secrets, func(s *corev1.Secret) bool { return s.Namespace == key.Namespace && s.Name == key.Name })
		if i >= 0 {
			r.secrets[i].DeepCopyInto(obj)
			return nil
		}
	case *resourcesv1alpha1.ManagedResource:
		if key == (types.NamespacedName{Namespace: r.proposed.Namespace, Name: r.proposed.Name}) {
			r.proposed.DeepCopyInto(obj)
			return nil
		}
	}
	return r.Client.Get(ctx, key, obj, options...)
}

// List lists objects.
func (r *reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Client.List(ctx, list, options...)
	if !apierrors.IsForbidden(err) {
		return err
	}
	err = r.Client.List(ctx, list, append(options, client.InNamespace(r.namespace))...)
	if apierrors.IsForbidden(err) {
		r.console.Warn("Not taken into account, as you may not list them: %s.", kindOf(list))
		return nil
	}
	if err == nil {
		r.console.Warn("Taken into account in namespace %s alone, as you may not list them elsewhere: %s.", r.namespace, kindOf(list))
	}
	return err
}

func kindOf(list client.ObjectList) string {
	if _, is := list.(*resourcesv1alpha1.ManagedResourceList); is {
		return "ManagedResources"
	}
	return "Secrets of a token requestor"
}

// Create refuses.
func (r *reader) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errReadOnly
}

// Update refuses.
func (r *reader) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errReadOnly
}

// Patch refuses.
func (r *reader) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errReadOnly
}

// Delete refuses.
func (r *reader) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errReadOnly
}

// tolerant reads from the target cluster what is of use and may be forbidden.
type tolerant struct {
	client.Reader
	console *console.Console
}

// List lists objects, none if that is forbidden.
func (t *tolerant) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := t.Reader.List(ctx, list, options...)
	if apierrors.IsForbidden(err) {
		t.console.Warn("Not taken into account, as you may not list them: HorizontalPodAutoscalers. Replicas that they set may be shown as changed.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	return nil
}

package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/dryrun"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// managedByDefault is the value of the managed-by label that a resource-manager sets by default.
const managedByDefault = "gardener"

// Settings are the relevant settings of the resource-manager. Empty ones are derived from the existing objects.
type Settings struct {
	ClusterID, ManagedBy string
	// CollectsGarbage is set if the garbage collector is enabled.
	CollectsGarbage bool
}

// Previewer computes what a resource-manager would change in ManagedResources. It reads shared data only once.
type Previewer struct {
	console  *console.Console
	settings Settings
	// secrets and proposed are proposed objects that override those in the cluster. proposed may be nil.
	secrets  []*corev1.Secret
	proposed *resourcesv1alpha1.ManagedResource
	scalers  *tolerant
	// reconcilers are the reconcilers by the settings of their resource-managers.
	reconcilers map[identity]*managedresource.Reconciler
	cluster     *dryrun.Cluster
	view        *live.View
}

// identity distinguishes resource-managers.
type identity struct{ class, clusterID, managedBy string }

// NewPreviewer returns a previewer. The Secrets and the ManagedResource override those in the cluster. The latter may
// be nil.
func NewPreviewer(c *console.Console, settings Settings, proposed *resourcesv1alpha1.ManagedResource, secrets []*corev1.Secret,
) (*Previewer, error) {
	target, err := c.Target()
	if err != nil {
		return nil, err
	}
	scalers, err := c.TargetClient()
	if err != nil {
		return nil, err
	}
	return &Previewer{
		console: c, settings: settings, secrets: secrets, proposed: proposed, scalers: &tolerant{Reader: scalers, console: c},
		reconcilers: map[identity]*managedresource.Reconciler{},
		cluster: dryrun.New(target.Objects, target.Dynamic, target.Schemas, func(user string, groups []string) (dynamic.Interface, error) {
			return c.TargetAs(user, groups)
		}),
		view: live.NewView(live.Options{Objects: target.Objects, Policy: fieldowner.DefaultPolicy(), Clock: c.Clock}),
	}, nil
}

// Preview returns what would change for a ManagedResource, and the target cluster with the simulated writes.
func (p *Previewer) Preview(
	ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
) (*managedresource.Prospect, *dryrun.Cluster, error) {
	settings := p.settings
	settings.complete(ctx, mr, p.view)
	reconciler, err := p.reconciler(mr.Namespace, identity{state.ClassOf(mr), settings.ClusterID, settings.ManagedBy})
	if err != nil {
		return nil, nil, err
	}
	prospect, err := reconciler.Preview(ctx, mr.DeepCopy())
	return prospect, p.cluster, err
}

// Result computes the changes of the objects of a ManagedResource.
func (p *Previewer) Result(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (Result, error) {
	found := Result{Namespace: mr.Namespace, Name: mr.Name, State: state.Of(mr).Word}
	if mr.UID == "" {
		found.State = ""
	}
	prospect, cluster, err := p.Preview(ctx, mr)
	if err != nil {
		return found, err
	}
	for _, forecast := range prospect.Forecasts {
		if apierrors.IsUnsupportedMediaType(forecast.Err) {
			return found, forecast.Err // an API server without server-side apply
		}
		entry, err := entryOf(forecast, cluster.Copy(forecast.Key()))
		if err != nil {
			return found, err
		}
		found.Changes = append(found.Changes, entry)
	}
	for _, problem := range prospect.Problems {
		found.Problems = append(found.Problems, problem.Error())
	}
	if prospect.Guarded != nil {
		found.Problems = append(found.Problems, prospect.Guarded.Error())
	}
	found.Blocked = prospect.Blocked
	return found, nil
}

// WarnOfForbiddenDryRuns warns on standard error of the kinds for which the user may not send dry-run requests.
func (p *Previewer) WarnOfForbiddenDryRuns() {
	if forbidden := p.cluster.ForbiddenKinds(); len(forbidden) > 0 {
		slices.Sort(forbidden)
		p.console.Warn("Shown without the API server's defaults and webhooks, because you may not patch them: %s.", strings.Join(forbidden, ", "))
	}
}

// Look returns an object before and after the changes, even if nothing would change. Both versions are nil if it does
// not exist.
func (p *Previewer) Look(ctx context.Context, ref object.Ref) (*dryrun.Copy, error) {
	if copied := p.cluster.Copy(ref.Key()); copied != nil && copied.Before != nil {
		return copied, nil
	}
	resource, err := p.cluster.ResourceInAnyVersion(ref) //nolint:contextcheck // discovery has a time limit of its own
	if errors.Is(err, target.ErrKindNotServed) {
		return &dryrun.Copy{Ref: ref}, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := resource.Get(ctx, ref.Name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return p.cluster.Copy(ref.Key()), nil
}

func (p *Previewer) reconciler(namespace string, of identity) (*managedresource.Reconciler, error) {
	if reconciler, known := p.reconcilers[of]; known {
		return reconciler, nil
	}
	source, err := p.console.Source()
	if err != nil {
		return nil, err
	}
	target, err := p.console.Target()
	if err != nil {
		return nil, err
	}
	reader := &reader{Client: source, console: p.console, namespace: namespace, secrets: p.secrets, proposed: p.proposed}
	p.reconcilers[of] = managedresource.NewReconciler(managedresource.Reconciler{
		Source: reader, Direct: reader, Autoscalers: p.scalers, Objects: target.Objects, Live: p.view,
		Engine: apply.NewEngineFor(p.cluster, apply.Settings{Policy: fieldowner.DefaultPolicy()}, p.console.Clock), Clock: p.console.Clock,
		Options: managedresource.Options{
			Class: of.class, ClusterID: of.clusterID, ManagedBy: of.managedBy,
			CollectsGarbage: p.settings.CollectsGarbage, Limits: manifest.DefaultLimits(),
		},
	})
	return p.reconcilers[of], nil
}

// complete derives empty settings from annotations and labels that the resource-manager set on existing objects.
func (s *Settings) complete(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, view *live.View) {
	const looked = 20 // one object is sufficient, but some may be deleted or belong to another owner
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

// errReadOnly is returned for all writes.
var errReadOnly = errors.New("previews are read-only")

// reader reads from the source cluster and from the proposed Secrets and ManagedResource. It writes nothing. If the
// user may not list
// objects in all namespaces, it lists them in the ManagedResource's own namespace.
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
		if r.proposed != nil && key == state.NameOf(r.proposed) {
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
		r.console.Warn("Not taken into account, because you may not list them: %s.", kindOf(list))
		return nil
	}
	if err == nil {
		r.console.Warn("Taken into account only in namespace %s, because you may not list them elsewhere: %s.", r.namespace, kindOf(list))
	}
	return err
}

func kindOf(list client.ObjectList) string {
	if _, is := list.(*resourcesv1alpha1.ManagedResourceList); is {
		return "ManagedResources"
	}
	return "Secrets of a token requestor"
}

// Create returns an error.
func (r *reader) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errReadOnly
}

// Update returns an error.
func (r *reader) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errReadOnly
}

// Patch returns an error.
func (r *reader) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errReadOnly
}

// Delete returns an error.
func (r *reader) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errReadOnly
}

// tolerant reads the HorizontalPodAutoscalers of the target cluster once. Without permission it returns an empty list.
type tolerant struct {
	client.Reader
	console *console.Console
	read    *autoscalingv2.HorizontalPodAutoscalerList
}

// List returns HorizontalPodAutoscalers.
func (t *tolerant) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	into, is := list.(*autoscalingv2.HorizontalPodAutoscalerList)
	if !is {
		return fmt.Errorf("unexpected list of type %T", list)
	}
	if t.read == nil {
		found := &autoscalingv2.HorizontalPodAutoscalerList{}
		err := t.Reader.List(ctx, found, options...)
		switch {
		case apierrors.IsForbidden(err):
			t.console.Warn("Not taken into account, because you may not list them: HorizontalPodAutoscalers. " +
				"Replicas that they set may be shown as changed.")
		case err != nil:
			return fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
		}
		t.read = found
	}
	t.read.DeepCopyInto(into)
	return nil
}

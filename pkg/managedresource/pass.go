package managedresource

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
)

// pass is one reconcile of one ManagedResource: what was read, decided and done in it.
type pass struct {
	*Reconciler
	mr        *resourcesv1alpha1.ManagedResource
	self      resourcesv1alpha1.Origin
	operation operation
	// engine writes to the target cluster.
	engine *apply.Engine
	// started is when the pass began.
	started time.Time

	documents []manifest.Document
	problems  []problem
	checksum  string
	// secrets are the versions of the Secrets that were read.
	secrets  []string
	scopes   map[schema.GroupVersionKind]manifest.Scope
	recorded inventory
	// scalers are what HorizontalPodAutoscalers scale; nil if they were not read.
	scalers autoscalers
	// tokenTargets are the Secrets into which a token requestor copies tokens.
	tokenTargets map[object.Key]bool
	manifests    []object.Manifest
	released     []object.Ref
	// coerced names objects with labels or annotations that were not strings.
	coerced []string
	// rendered is when the manifests were made.
	rendered time.Time
	// departed says since when objects are in no manifest, delay for how long they wait for another ManagedResource.
	departed map[object.Key]time.Time
	delay    time.Duration
	// owners says who owns objects.
	owners *ownership.Reader
	// baseline is how many objects the inventory held before objects left the manifests. The share of the prune guard is of it.
	baseline int
	// gate says what changes have to wait for.
	gate gate
	// guarded says why objects that left the manifests are kept.
	guarded error
	// unread is set if manifests could not be read, so that not all that is wanted is known.
	unread bool
	// unrecordable are objects that are wanted and cannot be recorded, so that they are not applied.
	unrecordable []object.Ref
	changes      []change
	// freshKinds are those whose definition was created in this pass, or in the last one without being served by its end.
	freshKinds map[schema.GroupKind]bool
	// lateKinds are fresh kinds that the API server does not serve yet.
	lateKinds map[schema.GroupKind]bool
	// confirmed is what became of the look at the source cluster before the first deletion; nil before it.
	confirmed *error
}

func (r *Reconciler) newPass(mr *resourcesv1alpha1.ManagedResource) *pass {
	p := &pass{
		Reconciler: r,
		mr:         mr,
		operation:  operationFor(mr, r.Options.Class),
		engine:     r.Engine,
		freshKinds: map[schema.GroupKind]bool{},
		lateKinds:  map[schema.GroupKind]bool{},
		started:    r.Clock.Now(),
		self:       resourcesv1alpha1.Origin{ClusterID: r.Options.ClusterID, Owner: client.ObjectKeyFromObject(mr)},
	}
	p.owners = ownership.NewReader(p.self, r.Options.Class, r.claims, r.Source, p.isRecordedBy)
	return p
}

// refuse has nothing applied and nothing pruned.
func (p *pass) refuse(err error) {
	p.problems = append(p.problems, problem{
		reason: resourcesv1alpha1.ReasonApplyFailed, err: err, refuses: true,
		transient: apierrors.ReasonForError(err) != metav1.StatusReasonUnknown,
	})
	p.unrecordable = append(p.unrecordable, refsOf(p.manifests)...)
	p.manifests, p.released, p.documents = nil, nil, nil
}

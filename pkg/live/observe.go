package live

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
)

// Examiner checks the health of objects. It is safe for concurrent use.
type Examiner interface {
	// NeedsBody reports whether the whole objects of a kind are required, and not only their metadata.
	NeedsBody(gk schema.GroupKind) bool
	// Examine returns the health of a whole object.
	Examine(gk schema.GroupKind, obj runtime.Object) health.Verdict
	// SetOwn sets the checks for the objects of an origin. It returns the kinds whose objects of this origin have to be
	// examined again, and an error if the checks cannot be used.
	SetOwn(origin string, checks []resourcesv1alpha1.HealthCheck) ([]schema.GroupKind, error)
	// Forget deletes the checks for the objects of an origin.
	Forget(origin string)
	// Epoch returns the current epoch for a later call of ChangedSince.
	Epoch() uint64
	// ChangedSince reports whether the checks for the objects of an origin have changed since an epoch.
	ChangedSince(epoch uint64, origin string) bool
}

// needsBody reports whether the whole objects of a kind are read, and not only their metadata.
func needsBody(examiner Examiner, gk schema.GroupKind) bool {
	return fieldowner.Scalable(gk) || gk == jobs || examinerOf(examiner, gk) != nil
}

// observer reduces objects of one kind to observations.
type observer struct {
	gk     schema.GroupKind
	policy fieldowner.Policy
	// examiner is nil if only the metadata of the objects is required.
	examiner Examiner
}

// examinerOf returns the examiner if the objects of a kind are examined, and nil if only their metadata is required.
func examinerOf(examiner Examiner, gk schema.GroupKind) Examiner {
	if examiner == nil || !examiner.NeedsBody(gk) {
		return nil
	}
	return examiner
}

// reduced is an object that will be stored. The ObjectMeta contains only namespace and name, for the reflector.
type reduced struct {
	metav1.ObjectMeta
	observation *Observation
	// epoch is the epoch in which the object was examined.
	epoch uint64
}

func (r *reduced) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// reduce returns the observation of an object, which is its metadata or, if it is examined, the whole object.
func (o observer) reduce(obj any) (*reduced, error) {
	switch obj := obj.(type) {
	case *reduced:
		return obj, nil
	case *metav1.PartialObjectMetadata:
		observation := Observe(obj, o.policy)
		observation.Examined = o.examiner == nil
		return &reduced{ObjectMeta: nameOf(obj), observation: &observation}, nil
	case runtime.Object:
		return o.examine(obj)
	}
	return nil, fmt.Errorf("a %T was watched instead of an object", obj)
}

func (o observer) examine(obj runtime.Object) (*reduced, error) {
	metadata, err := metadataOf(obj)
	if err != nil {
		return nil, err
	}
	observation := Observe(metadata, o.policy)
	observation.Examined = true
	observation.Replicas = replicasOf(obj, metadata.ManagedFields)
	observation.Finished = finished(obj)
	result := &reduced{ObjectMeta: nameOf(metadata), observation: &observation}
	if o.examiner != nil {
		result.epoch = o.examiner.Epoch() // before the checks are read
		if verdict := o.examiner.Examine(o.gk, obj); verdict != (health.Verdict{}) {
			observation.Health = &verdict
		}
	}
	return result, nil
}

// isOutdated reports whether the checks of an object may have changed since it was examined.
func (o observer) isOutdated(epoch uint64, observation *Observation) bool {
	return o.examiner != nil && o.examiner.ChangedSince(epoch, observation.Origin)
}

func nameOf(obj metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: interned(obj.GetNamespace()), Name: obj.GetName()}
}

// metadataOf returns the metadata of a whole object.
func metadataOf(obj runtime.Object) (*metav1.PartialObjectMetadata, error) {
	if untyped, is := obj.(*unstructured.Unstructured); is {
		metadata := &metav1.PartialObjectMetadata{}
		content, _ := untyped.Object["metadata"].(map[string]any)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &metadata.ObjectMeta); err != nil {
			return nil, fmt.Errorf("read the metadata of %s %s/%s: %w", untyped.GetKind(), untyped.GetNamespace(), untyped.GetName(), err)
		}
		return metadata, nil
	}
	holder, is := obj.(metav1.ObjectMetaAccessor)
	if !is {
		return nil, fmt.Errorf("a %T has no metadata", obj)
	}
	typed, is := holder.GetObjectMeta().(*metav1.ObjectMeta)
	if !is {
		return nil, fmt.Errorf("the metadata of a %T is not Kubernetes' own", obj)
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: *typed}, nil
}

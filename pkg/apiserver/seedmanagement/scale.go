package seedmanagement

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// replicasPaths is the field with the number of replicas in each version. Clients that apply a Scale own this field of
// the set.
var replicasPaths = managedfields.ResourcePathMappings{
	seedmanagementv1alpha1.SchemeGroupVersion.String(): fieldpath.MakePathOrDie("spec", "replicas"),
}

// scale is the subresource that reads and changes the number of replicas of a ManagedSeedSet.
type scale struct{ store *genericregistry.Store }

var (
	_ rest.Patcher                  = &scale{}
	_ rest.GroupVersionKindProvider = &scale{}
	_ rest.TableConvertor           = &scale{}
)

// New implements rest.Storage.
func (*scale) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage. It does nothing, because the main resource closes the storage.
func (*scale) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*scale) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// Get implements rest.Getter.
func (s *scale) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	set, err := s.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(set.(managedSeedSet))
}

// Update implements rest.Updater.
func (s *scale) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, validateCreate rest.ValidateObjectFunc,
	validateUpdate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	validate := func(ctx context.Context, obj, old runtime.Object) error {
		if validateUpdate == nil {
			return nil
		}
		updated, err := scaleOf(obj.(managedSeedSet))
		if err != nil {
			return err
		}
		stored, err := scaleOf(old.(managedSeedSet))
		if err != nil {
			return err
		}
		return validateUpdate(ctx, updated, stored)
	}
	obj, _, err := s.store.Update(ctx, name, &scaledObject{name, info}, validateCreate, validate, false, options)
	if err != nil {
		return nil, false, err
	}
	updated, err := scaleOf(obj.(managedSeedSet))
	return updated, false, err
}

// ConvertToTable implements rest.TableConvertor.
func (s *scale) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return rest.NewDefaultTableConvertor(seedmanagementv1alpha1.Resource("managedseedsets/scale")).ConvertToTable(ctx, object, options)
}

// scaleOf returns the scale of a set. It fails if the selector of the set is invalid.
func scaleOf(set managedSeedSet) (*autoscalingv1.Scale, error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of ManagedSeedSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: set.Name, Namespace: set.Namespace, UID: set.UID, ResourceVersion: set.ResourceVersion, CreationTimestamp: set.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: replicas(set)},
		Status: autoscalingv1.ScaleStatus{Replicas: set.Status.Replicas, Selector: selector.String()},
	}, nil
}

// scaledObject converts an update of a scale to an update of its set.
type scaledObject struct {
	name string
	info rest.UpdatedObjectInfo
}

// Preconditions implements rest.UpdatedObjectInfo.
func (s *scaledObject) Preconditions() *metav1.Preconditions { return s.info.Preconditions() }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (s *scaledObject) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	set := old.DeepCopyObject().(managedSeedSet)
	stored, err := scaleOf(set)
	if err != nil {
		return nil, err
	}
	owners := managedfields.NewScaleHandler(set.ManagedFields, seedmanagementv1alpha1.SchemeGroupVersion, replicasPaths)
	if stored.ManagedFields, err = owners.ToSubresource(); err != nil {
		return nil, err
	}
	obj, err := s.info.UpdatedObject(ctx, stored)
	if err != nil {
		return nil, err
	}
	wanted, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got a %T", obj))
	}
	if wanted.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), s.name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), wanted.Spec.Replicas, "must not be negative"),
		})
	}
	set.ResourceVersion = wanted.ResourceVersion
	set.Spec.Replicas = &wanted.Spec.Replicas
	set.ManagedFields, err = owners.ToParent(wanted.ManagedFields)
	return set, err
}

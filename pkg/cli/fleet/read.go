package fleet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// Owner is a Shoot, a Seed or a Garden, for which a flow emits ManagedResources.
type Owner struct {
	Name

	UID     types.UID
	Created time.Time
	// SeedName is the Seed with the control plane of a Shoot, and TechnicalID its namespace. They are empty if not known
	// yet.
	SeedName, TechnicalID string
	// SeedIsMissing is set if that Seed does not exist. A Seed that cannot be read is assumed to exist.
	SeedIsMissing bool
	// Observed is set if gardenlet, or the operator, has observed the current generation.
	Observed bool
	// LastOperation is nil if no operation has begun.
	LastOperation *corev1beta1.LastOperation
	LastErrors    []corev1beta1.LastError
	Conditions    []corev1beta1.Condition
}

// Read reads a Shoot or a Seed from the garden, or a Garden from the cluster with the ManagedResources.
func Read(ctx context.Context, c *console.Console, name Name) (*Owner, error) {
	garden, err := connect(c, name.Kind)
	if err != nil {
		return nil, err
	}
	var owner *Owner
	switch name.Kind {
	case Shoot:
		shoot := &corev1beta1.Shoot{}
		err = garden.Get(ctx, name.NamespacedName, shoot)
		owner = ofShoot(shoot)
	case Seed:
		seed := &corev1beta1.Seed{}
		err = garden.Get(ctx, name.NamespacedName, seed)
		owner = ofSeed(seed)
	default:
		made := &operatorv1alpha1.Garden{}
		err = garden.Get(ctx, name.NamespacedName, made)
		owner = ofGarden(made)
	}
	switch {
	case console.HasNoKind(err):
		return nil, notServed(garden, name.Kind)
	case apierrors.IsNotFound(err):
		return nil, unknown(ctx, garden, name)
	case apierrors.IsForbidden(err) && garden.isSource && name.Kind != Garden:
		return nil, fmt.Errorf("%w\nIf the garden is another cluster, select it with --garden-kubeconfig or --garden-context", err)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	owner.Name = name
	if owner.SeedName != "" {
		seed := &metav1.PartialObjectMetadata{}
		seed.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind(Seed))
		owner.SeedIsMissing = apierrors.IsNotFound(garden.Get(ctx, types.NamespacedName{Name: owner.SeedName}, seed))
	}
	return owner, nil
}

func ofShoot(shoot *corev1beta1.Shoot) *Owner {
	seed := ptr.Deref(shoot.Status.SeedName, "")
	if seed == "" {
		seed = ptr.Deref(shoot.Spec.SeedName, "")
	}
	return &Owner{
		UID: shoot.UID, Created: shoot.CreationTimestamp.Time, SeedName: seed, TechnicalID: shoot.Status.TechnicalID,
		Observed: shoot.Status.ObservedGeneration == shoot.Generation, LastOperation: shoot.Status.LastOperation,
		LastErrors: shoot.Status.LastErrors, Conditions: shoot.Status.Conditions,
	}
}

func ofSeed(seed *corev1beta1.Seed) *Owner {
	return &Owner{
		UID: seed.UID, Created: seed.CreationTimestamp.Time, Observed: seed.Status.ObservedGeneration == seed.Generation,
		LastOperation: seed.Status.LastOperation, Conditions: seed.Status.Conditions,
	}
}

func ofGarden(garden *operatorv1alpha1.Garden) *Owner {
	return &Owner{
		UID: garden.UID, Created: garden.CreationTimestamp.Time, Observed: garden.Status.ObservedGeneration == garden.Generation,
		LastOperation: garden.Status.LastOperation, Conditions: garden.Status.Conditions,
	}
}

// notServed returns the error for a cluster without Shoots and Seeds, or without Gardens. It does not wrap the error of the API server,
// which would
// be explained as a cluster without ManagedResources.
func notServed(garden *cluster, kind string) error {
	if kind == Garden {
		return fmt.Errorf("the cluster %s does not serve Gardens (%s): select the cluster of the operator with --context or --kubeconfig",
			garden.host, operatorv1alpha1.SchemeGroupVersion)
	}
	advice := "select the garden with --garden-kubeconfig or --garden-context"
	if !garden.isSource {
		advice = "check --garden-kubeconfig and --garden-context"
	}
	return fmt.Errorf("the cluster %s does not serve Shoots and Seeds (%s): %s", garden.host, corev1beta1.SchemeGroupVersion, advice)
}

// unknown returns the error for a Shoot, Seed or Garden that does not exist. It suggests other names if they can be read.
func unknown(ctx context.Context, garden *cluster, name Name) error {
	list, err := names(ctx, garden, name.Kind, name.Namespace)
	var others []string
	for _, other := range list {
		others = append(others, other.Name)
	}
	suggestion := console.Suggest(name.Name, others)
	where := "the garden " + garden.host
	if name.Kind == Garden {
		where = "the cluster " + garden.host
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s not found in %s", name, where)
	case suggestion == "" && len(others) == 0 && name.Kind == Shoot:
		suggestion = fmt.Sprintf(", and namespace %s has no Shoots", name.Namespace)
	}
	return fmt.Errorf("%s not found in %s%s", name, where, suggestion)
}

// names returns the names of all Shoots of a namespace, of all Shoots if the namespace is empty, or of all Seeds or Gardens.
func names(ctx context.Context, garden *cluster, kind, namespace string) ([]types.NamespacedName, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(versionOf(kind).WithKind(kind + "List"))
	if err := garden.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	found := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return found, nil
}

// Package registration creates or updates the Seed of a gardenlet in the garden, and waits until the garden is ready for it.
package registration

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientcache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

const (
	fieldManager = "gardenlet"
	labelTrue    = "true"
)

// SeedLabel returns the label of objects that belong to a Seed.
func SeedLabel(seed string) string { return constants.LabelPrefixSeedName + seed }

// Register creates the Seed of the configuration, or updates it if its specification, labels or annotations differ.
func Register(ctx context.Context, garden client.Client, config *v1alpha1.SeedConfig) (*gardencorev1beta1.Seed, error) {
	wanted := wantedSeed(config)
	seed := &gardencorev1beta1.Seed{}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := garden.Get(ctx, client.ObjectKeyFromObject(wanted), seed)
		if apierrors.IsNotFound(err) {
			seed = wanted.DeepCopy()
			return garden.Create(ctx, seed, client.FieldOwner(fieldManager))
		}
		if err != nil || !complete(seed, wanted) {
			return err
		}
		log.FromContext(ctx).Info("Updating the Seed", "seed", seed.Name)
		return garden.Update(ctx, seed, client.FieldOwner(fieldManager))
	})
	if err != nil {
		return nil, fmt.Errorf("register Seed %s in the garden: %w", wanted.Name, err)
	}
	return seed, nil
}

// wantedSeed returns the Seed of a configuration, with defaults applied.
func wantedSeed(config *v1alpha1.SeedConfig) *gardencorev1beta1.Seed {
	name := config.Metadata.Name
	seed := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: maps.Clone(config.Metadata.Annotations)},
		Spec:       *config.Spec.DeepCopy(),
	}
	maps.Copy(seed.Labels, config.Metadata.Labels)
	seed.Labels[constants.LabelGardenRole] = constants.RoleSeed
	seed.Labels[SeedLabel(name)] = labelTrue
	gardencorev1beta1.SetDefaultsSeed(seed)
	return seed
}

// complete updates a Seed to the wanted state, and reports whether it differed. It retains labels and annotations of others.
func complete(seed, wanted *gardencorev1beta1.Seed) bool {
	before := seed.DeepCopy()
	seed.Spec = *wanted.Spec.DeepCopy()
	for key, value := range wanted.Labels {
		metav1.SetMetaDataLabel(&seed.ObjectMeta, key, value)
	}
	for key, value := range wanted.Annotations {
		metav1.SetMetaDataAnnotation(&seed.ObjectMeta, key, value)
	}
	return !equality.Semantic.DeepEqual(before, seed)
}

// AwaitNamespace waits until the garden's controller-manager has created the namespace of a Seed. It watches only that namespace.
func AwaitNamespace(ctx context.Context, garden kubernetes.Interface, seed string) error {
	name := constants.PrefixSeedNamespace + seed
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &clientcache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return garden.CoreV1().Namespaces().List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return garden.CoreV1().Namespaces().Watch(ctx, options)
		},
	}
	log.FromContext(ctx).Info("Waiting for the namespace of the Seed in the garden", "namespace", name)
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Namespace{}, nil, func(event watch.Event) (bool, error) {
		namespace, ok := event.Object.(*corev1.Namespace)
		return ok && event.Type != watch.Deleted && namespace.DeletionTimestamp == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for namespace %s of the garden: %w", name, err)
	}
	return nil
}

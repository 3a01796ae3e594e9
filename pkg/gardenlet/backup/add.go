package backup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// lookEvery is how often the cache is checked for a definition that does not exist yet. This sends no requests.
const lookEvery = time.Second

// WatchWhenDefined makes a controller watch objects of a kind once the seed defines it. The flow of the Seed deploys the definition.
func WatchWhenDefined(
	mgr manager.Manager, of cache.Cache, to controller.Controller, definition string,
	object client.Object, events handler.EventHandler, filters ...predicate.Predicate,
) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !of.WaitForCacheSync(ctx) { // a running manager starts the cache and this runnable concurrently
			return nil
		}
		err := wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
			var found apiextensionsv1.CustomResourceDefinition
			err := of.Get(ctx, client.ObjectKey{Name: definition}, &found, client.UnsafeDisableDeepCopy)
			if err != nil {
				return false, client.IgnoreNotFound(err)
			}
			return apihelpers.IsCRDConditionTrue(&found, apiextensionsv1.Established), nil
		})
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the manager ends
			}
			return fmt.Errorf("read the definition %s: %w", definition, err)
		}
		log.FromContext(ctx).Info("Watching a kind that the seed has started to define", "definition", definition)
		if err := to.Watch(source.Kind(of, object, events, filters...)); err != nil {
			return fmt.Errorf("watch %s: %w", definition, err)
		}
		return nil
	}))
}

// eventsBuffer is how many changes of credentials can be pending, more than any seed needs. A dropped change is read when its users are
// reconciled again.
const eventsBuffer = 1024

// CredentialsChanged returns a source of requests for changes of credentials that were read.
func (s *Seed) CredentialsChanged(requests handler.MapFunc) source.Source {
	changes := watches.NewNotifier(eventsBuffer)
	s.Objects.OnChange(changes.Notify)
	return changes.Source(requests)
}

// BucketsWith returns the buckets that use credentials of the garden.
func (s *Seed) BucketsWith(ctx context.Context, object client.Object) []corev1beta1.BackupBucket {
	var all corev1beta1.BackupBucketList
	if err := s.Garden.List(ctx, &all); err != nil {
		return nil // the cache has not synced, and its watch reports all buckets once it has
	}
	var found []corev1beta1.BackupBucket
	for _, bucket := range all.Items {
		given, generated := bucket.Spec.CredentialsRef, bucket.Status.GeneratedSecretRef
		if given != nil && given.Namespace == object.GetNamespace() && given.Name == object.GetName() ||
			generated != nil && generated.Namespace == object.GetNamespace() && generated.Name == object.GetName() {
			found = append(found, bucket)
		}
	}
	return found
}

package extensionobjects

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension/heartbeat"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// ErrNotSynced says that objects of a kind exist that have not been read yet, for example after a start. It ends by itself:
// callers try again after [SyncedAgain].
var ErrNotSynced = errors.New("the objects of a kind have not been read from the seed yet")

// SyncedAgain is how long callers wait until they read objects again that were not known.
const SyncedAgain = time.Second

// Objects reads the extension objects in the seed.
type Objects struct {
	// Cache contains the objects of a kind once the seed defines it, reduced by [Reduce], and the heartbeats of extensions.
	Cache cache.Cache
}

// New creates the cache and adds it to the manager. The cache cannot have options for kinds that the seed does not define yet.
func New(mgr manager.Manager) (*Objects, error) {
	made, err := watches.NewCache(mgr, "the objects of extensions", cache.Options{
		DefaultTransform: Reduce, ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, heartbeat.LeaseName)},
		},
	})
	if err != nil {
		return nil, err
	}
	for _, object := range []client.Object{&apiextensionsv1.CustomResourceDefinition{}, &coordinationv1.Lease{}} {
		if _, err := made.GetInformer(context.Background(), object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("make a cache of the objects of extensions: %w", err)
		}
	}
	if err := mgr.Add(made); err != nil {
		return nil, fmt.Errorf("add a cache of the objects of extensions: %w", err)
	}
	return &Objects{Cache: made}, nil
}

// Reduce removes the fields that are not read. It keeps the type, purpose, conditions, state and deletion of an extension
// object, the updates in place of a Worker, the conditions of a definition, and all of a Lease.
func Reduce(object any) (any, error) {
	switch full := object.(type) {
	case extensionsv1alpha1.Object:
		reduced, ok := reflect.New(reflect.TypeOf(full).Elem()).Interface().(extensionsv1alpha1.Object)
		if !ok {
			return object, nil
		}
		keep(full, reduced)
		return reduced, nil
	case *apiextensionsv1.CustomResourceDefinition:
		reduced := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion},
		}
		reduced.Status.Conditions = full.Status.Conditions
		return reduced, nil
	case client.Object:
		full.SetManagedFields(nil)
	}
	return object, nil
}

// keep copies the fields that are read into an empty object.
func keep(full, reduced extensionsv1alpha1.Object) {
	reduced.SetNamespace(full.GetNamespace())
	reduced.SetName(full.GetName())
	reduced.SetUID(full.GetUID())
	reduced.SetResourceVersion(full.GetResourceVersion())
	reduced.SetDeletionTimestamp(full.GetDeletionTimestamp())
	if forced, found := full.GetAnnotations()[constants.AnnotationConfirmationForceDeletion]; found {
		reduced.SetAnnotations(map[string]string{constants.AnnotationConfirmationForceDeletion: forced})
	}
	reduced.GetExtensionSpec().Type = full.GetExtensionSpec().Type
	from, to := full.GetExtensionStatus(), reduced.GetExtensionStatus()
	to.Conditions, to.State, to.Resources = from.Conditions, from.State, from.Resources
	if worker, is := full.(*extensionsv1alpha1.Worker); is {
		if into, is := reduced.(*extensionsv1alpha1.Worker); is {
			into.Status.InPlaceUpdates = worker.Status.InPlaceUpdates
		}
	}
	if config, is := full.(*extensionsv1alpha1.OperatingSystemConfig); is {
		if into, is := reduced.(*extensionsv1alpha1.OperatingSystemConfig); is {
			into.Spec.Purpose = config.Spec.Purpose
		}
	}
}

// Watch makes a controller watch the objects of a kind once the seed defines it.
func (o *Objects) Watch(
	mgr manager.Manager, to controller.Controller, of Kind, events handler.EventHandler, filters ...predicate.Predicate,
) error {
	if err := backup.WatchWhenDefined(mgr, o.Cache, to, of.definition(), of.New(), events, filters...); err != nil {
		return fmt.Errorf("add a watch of %s: %w", of.definition(), err)
	}
	return nil
}

// List returns the objects of a kind that belong to the control plane of a Shoot, sorted by name. It returns none if the
// seed does not define the kind, and [ErrNotSynced] if it does, but its objects are not known yet.
func (o *Objects) List(ctx context.Context, of Kind, shoot *corev1beta1.Shoot) ([]extensionsv1alpha1.Object, error) {
	if defined, err := o.defined(ctx, of); err != nil || !defined {
		return nil, err
	}
	if of.Name == kindBackupEntry {
		entry := of.New()
		err := o.Cache.Get(ctx, client.ObjectKey{Name: shoot.Status.TechnicalID + "--" + string(shoot.Status.UID)}, entry)
		if err == nil {
			return []extensionsv1alpha1.Object{entry}, nil
		}
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("read the BackupEntry: %w", err)
	}
	var found []extensionsv1alpha1.Object
	list := of.NewList()
	err := o.Cache.List(ctx, list, client.InNamespace(shoot.Status.TechnicalID))
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(extensionsv1alpha1.Object); ok {
				found = append(found, object)
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list the objects of kind %s in namespace %s: %w", of.Name, shoot.Status.TechnicalID, err)
	}
	slices.SortFunc(found, func(a, b extensionsv1alpha1.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return found, nil
}

// UpdatedInPlace returns the hashes that the Worker of a Shoot reports for pools whose machines are all updated in place, by the names of the
// pools. It is nil if there is no report.
func (o *Objects) UpdatedInPlace(ctx context.Context, shoot *corev1beta1.Shoot) (map[string]string, error) {
	workers, err := o.List(ctx, named(kindWorker), shoot)
	if err != nil {
		return nil, err
	}
	for _, object := range workers {
		if worker, is := object.(*extensionsv1alpha1.Worker); is && worker.Status.InPlaceUpdates != nil {
			return worker.Status.InPlaceUpdates.WorkerPoolToHashMap, nil
		}
	}
	return nil, nil
}

// Known returns [ErrNotSynced] while the objects of a kind are not known.
func (o *Objects) Known(ctx context.Context, of Kind) error {
	_, err := o.defined(ctx, of)
	return err
}

// defined reports whether the seed defines a kind, in which case its objects are in the cache. It returns [ErrNotSynced] while
// the cache is filled: then an object that is not in the cache may exist.
func (o *Objects) defined(ctx context.Context, of Kind) (bool, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := o.synced(ctx, definition); err != nil {
		return false, err
	}
	err := o.Cache.Get(ctx, client.ObjectKey{Name: of.definition()}, definition, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, o.synced(ctx, of.New())
}

// synced returns [ErrNotSynced] unless the cache contains all objects of the type.
func (o *Objects) synced(ctx context.Context, object client.Object) error {
	informer, err := o.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("%w: %T: %w", ErrNotSynced, object, err)
	}
	if !informer.HasSynced() {
		return fmt.Errorf("%w: %T", ErrNotSynced, object)
	}
	return nil
}

// ControlPlaneOf returns the namespace of the control plane to which an extension object belongs. The name of a BackupEntry starts with it,
// after the prefix of one from which backups are copied.
func ControlPlaneOf(object client.Object) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace
	}
	name := strings.TrimPrefix(object.GetName(), constants.PrefixSourceBackupEntry)
	if at := strings.LastIndex(name, "--"); at >= 0 {
		return name[:at]
	}
	return name
}

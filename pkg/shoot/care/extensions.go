package care

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
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension/heartbeat"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// extensionKind is a kind of objects whose conditions count for Shoots.
type extensionKind struct {
	name string
	// definition is the name of the CustomResourceDefinition.
	definition string
	newObject  func() extensionsv1alpha1.Object
	newList    func() client.ObjectList
}

// extensionKinds are those whose conditions gardenlet merges into those of Shoots.
var extensionKinds = []extensionKind{
	{"Extension", "extensions", func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Extension{} }, func() client.ObjectList { return &extensionsv1alpha1.ExtensionList{} }},
	{"ContainerRuntime", "containerruntimes", func() extensionsv1alpha1.Object { return &extensionsv1alpha1.ContainerRuntime{} }, func() client.ObjectList { return &extensionsv1alpha1.ContainerRuntimeList{} }},
	{"ControlPlane", "controlplanes", func() extensionsv1alpha1.Object { return &extensionsv1alpha1.ControlPlane{} }, func() client.ObjectList { return &extensionsv1alpha1.ControlPlaneList{} }},
	{"Infrastructure", "infrastructures", func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Infrastructure{} }, func() client.ObjectList { return &extensionsv1alpha1.InfrastructureList{} }},
	{"Network", "networks", func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Network{} }, func() client.ObjectList { return &extensionsv1alpha1.NetworkList{} }},
	{"OperatingSystemConfig", "operatingsystemconfigs", func() extensionsv1alpha1.Object { return &extensionsv1alpha1.OperatingSystemConfig{} }, func() client.ObjectList { return &extensionsv1alpha1.OperatingSystemConfigList{} }},
	{"Worker", "workers", func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Worker{} }, func() client.ObjectList { return &extensionsv1alpha1.WorkerList{} }},
	{kindBackupEntry, "backupentries", func() extensionsv1alpha1.Object { return &extensionsv1alpha1.BackupEntry{} }, func() client.ObjectList { return &extensionsv1alpha1.BackupEntryList{} }},
}

// kindBackupEntry is the one kind of these whose objects are in no namespace.
const kindBackupEntry = "BackupEntry"

// extensions reads what extensions report.
type extensions struct {
	// seed is a cache of what [reduceReports] keeps, and of the heartbeats. It has a kind once the seed defines it.
	seed cache.Cache
	// garden has the ControllerInstallations of the Seed, and the ControllerRegistrations.
	garden   client.Reader
	seedName string
}

// newExtensions makes the cache, which the caller adds to the manager. Kinds that the seed does not define yet cannot have options of their own.
func newExtensions(mgr manager.Manager, garden client.Reader, seedName string) (*extensions, error) {
	seed, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), NewInformer: rewatch.NewInformer,
		DefaultTransform: reduceReports, ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&coordinationv1.Lease{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, heartbeat.LeaseName)}},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of what extensions report: %w", err)
	}
	for _, object := range []client.Object{&apiextensionsv1.CustomResourceDefinition{}, &coordinationv1.Lease{}} {
		if _, err := seed.GetInformer(context.Background(), object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("make a cache of what extensions report: %w", err)
		}
	}
	return &extensions{seed: seed, garden: garden, seedName: seedName}, nil
}

// reduceReports keeps of an object of an extension its type and conditions, of a definition whether it is established, and of a Lease all.
func reduceReports(object any) (any, error) {
	switch full := object.(type) {
	case extensionsv1alpha1.Object:
		reduced, ok := reflect.New(reflect.TypeOf(full).Elem()).Interface().(extensionsv1alpha1.Object)
		if !ok {
			return object, nil
		}
		reduced.SetNamespace(full.GetNamespace())
		reduced.SetName(full.GetName())
		reduced.SetUID(full.GetUID())
		reduced.SetResourceVersion(full.GetResourceVersion())
		reduced.GetExtensionSpec().Type = full.GetExtensionSpec().Type
		reduced.GetExtensionStatus().Conditions = full.GetExtensionStatus().Conditions
		return reduced, nil
	case *apiextensionsv1.CustomResourceDefinition:
		reduced := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion}}
		reduced.Status.Conditions = full.Status.Conditions
		return reduced, nil
	case client.Object:
		full.SetManagedFields(nil)
	}
	return object, nil
}

// reported lets changes of what extensions report pass.
func reported() predicate.Predicate {
	conditions := func(object client.Object) []corev1beta1.Condition {
		if extension, ok := object.(extensionsv1alpha1.Object); ok {
			return extension.GetExtensionStatus().Conditions
		}
		return nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(conditions(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(conditions(e.ObjectOld), conditions(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return len(conditions(e.Object)) > 0 },
	}
}

// revived lets the first sign of life of an extension pass, and the first one after it was silent for too long. When it falls silent is a matter of time.
func revived(stale time.Duration) predicate.Predicate {
	renewed := func(object client.Object) time.Time {
		if lease, ok := object.(*coordinationv1.Lease); ok && lease.Spec.RenewTime != nil {
			return lease.Spec.RenewTime.Time
		}
		return time.Time{}
	}
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return stale > 0 && renewed(e.ObjectNew).Sub(renewed(e.ObjectOld)) >= stale
		},
	}
}

// controlPlaneOf returns the namespace of the control plane that an object of an extension belongs to. The name of a BackupEntry begins with it.
func controlPlaneOf(object client.Object) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace
	}
	name := object.GetName()
	if at := strings.LastIndex(name, "--"); at >= 0 {
		return name[:at]
	}
	return name
}

// contributions returns what extensions report about a control plane, in the order of kinds and names.
func (e *extensions) contributions(ctx context.Context, shoot *corev1beta1.Shoot) ([]Contribution, error) {
	var all []Contribution
	for _, kind := range extensionKinds {
		objects, err := e.list(ctx, kind, shoot)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			for _, condition := range object.GetExtensionStatus().Conditions {
				all = append(all, Contribution{Kind: kind.name, Name: object.GetName(), Type: object.GetExtensionSpec().Type, Condition: condition})
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	namespaces, err := e.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Heartbeat, err = e.heartbeat(ctx, namespaces[all[i].Kind+"/"+all[i].Type]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// list returns the objects of a kind that belong to a control plane. There are none before the seed defines the kind.
func (e *extensions) list(ctx context.Context, kind extensionKind, shoot *corev1beta1.Shoot) ([]extensionsv1alpha1.Object, error) {
	var found []extensionsv1alpha1.Object
	var uncached *cache.ErrResourceNotCached
	if kind.name == kindBackupEntry {
		entry := kind.newObject()
		err := e.seed.Get(ctx, client.ObjectKey{Name: shoot.Status.TechnicalID + "--" + string(shoot.Status.UID)}, entry)
		if err == nil {
			found = append(found, entry)
		}
		if errors.As(err, &uncached) || client.IgnoreNotFound(err) == nil {
			return found, nil
		}
		return nil, fmt.Errorf("read the BackupEntry: %w", err)
	}
	list := kind.newList()
	err := e.seed.List(ctx, list, client.InNamespace(shoot.Status.TechnicalID))
	if errors.As(err, &uncached) {
		return nil, nil
	}
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(extensionsv1alpha1.Object); ok {
				found = append(found, object)
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list the objects of kind %s in namespace %s: %w", kind.name, shoot.Status.TechnicalID, err)
	}
	slices.SortFunc(found, func(a, b extensionsv1alpha1.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return found, nil
}

// namespaces returns the namespaces of the extensions in the seed, by kind and type, such as Worker/local.
func (e *extensions) namespaces(ctx context.Context) (map[string]string, error) {
	var installations corev1beta1.ControllerInstallationList
	if err := e.garden.List(ctx, &installations, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ControllerInstallations of the Seed: %w", err)
	}
	namespaces := map[string]string{}
	for i := range installations.Items {
		installation := &installations.Items[i]
		if installation.Spec.SeedRef == nil || installation.Spec.SeedRef.Name != e.seedName {
			continue
		}
		var registration corev1beta1.ControllerRegistration
		err := e.garden.Get(ctx, client.ObjectKey{Name: installation.Spec.RegistrationRef.Name}, &registration, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read ControllerRegistration %s: %w", installation.Spec.RegistrationRef.Name, err)
		}
		for _, resource := range registration.Spec.Resources {
			namespaces[resource.Kind+"/"+resource.Type] = constants.PrefixExtensionNamespace + installation.Name
		}
	}
	return namespaces, nil
}

// heartbeat returns when the extension in a namespace last gave a sign of life; zero if it never did.
func (e *extensions) heartbeat(ctx context.Context, namespace string) (time.Time, error) {
	if namespace == "" {
		return time.Time{}, nil
	}
	var lease coordinationv1.Lease
	if err := e.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: heartbeat.LeaseName}, &lease); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return time.Time{}, nil
		}
		return time.Time{}, fmt.Errorf("read the heartbeat in namespace %s: %w", namespace, err)
	}
	if lease.Spec.RenewTime == nil {
		return time.Time{}, nil
	}
	return lease.Spec.RenewTime.Time, nil
}

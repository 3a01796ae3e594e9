package care

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension/heartbeat"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
)

// extensions reads the reports of extensions.
type extensions struct {
	objects *extensionobjects.Objects
	// garden reads the ControllerInstallations of the Seed and the ControllerRegistrations.
	garden   client.Reader
	seedName string
}

// reported passes changes of the conditions of extension objects, and of the updates in place that Workers report.
func reported() predicate.Predicate {
	conditions := func(object client.Object) []corev1beta1.Condition {
		if extension, ok := object.(extensionsv1alpha1.Object); ok {
			return extension.GetExtensionStatus().Conditions
		}
		return nil
	}
	updates := func(object client.Object) *extensionsv1alpha1.WorkerInPlaceUpdatesStatus {
		if worker, is := object.(*extensionsv1alpha1.Worker); is {
			return worker.Status.InPlaceUpdates
		}
		return nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(conditions(e.Object)) > 0 || updates(e.Object) != nil },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(conditions(e.ObjectOld), conditions(e.ObjectNew)) ||
				!equality.Semantic.DeepEqual(updates(e.ObjectOld), updates(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return len(conditions(e.Object)) > 0 },
	}
}

// revived passes a renewal of a heartbeat that was missing or outdated. Outdated heartbeats are detected by time.
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

// contributions returns the reports of extensions for a control plane, sorted by kind and name.
func (e *extensions) contributions(ctx context.Context, shoot *corev1beta1.Shoot) ([]Contribution, error) {
	var all []Contribution
	for _, kind := range extensionobjects.Contributing() {
		objects, err := e.objects.List(ctx, kind, shoot)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			for _, condition := range object.GetExtensionStatus().Conditions {
				all = append(all, Contribution{Kind: kind.Name, Name: object.GetName(), Type: object.GetExtensionSpec().Type, Condition: condition})
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

// namespaces returns the namespaces of extensions in the seed, by kind and type, such as Worker/local.
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

// heartbeat returns when the extension in a namespace last renewed its heartbeat, or zero.
func (e *extensions) heartbeat(ctx context.Context, namespace string) (time.Time, error) {
	if namespace == "" {
		return time.Time{}, nil
	}
	var lease coordinationv1.Lease
	if err := e.objects.Cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: heartbeat.LeaseName}, &lease); err != nil {
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

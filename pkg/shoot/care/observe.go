package care

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
)

// operationChanged passes changes of a Shoot on which its conditions depend.
func operationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1beta1.Shoot)
		after, is := e.ObjectNew.(*corev1beta1.Shoot)
		if !was || !is {
			return true
		}
		state := func(shoot *corev1beta1.Shoot) string {
			last, status := ptr.Deref(shoot.Status.LastOperation, corev1beta1.LastOperation{}), shoot.Status
			return fmt.Sprint(last.Type, last.State, hibernates(shoot), shoot.Generation, len(status.LastErrors) > 0, status.TechnicalID,
				ptr.Deref(status.SeedName, ""), shoot.DeletionTimestamp != nil)
		}
		return state(before) != state(after)
	}}
}

// componentChanged passes changes of ManagedResources on which a condition or constraint may depend.
func componentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
		after, is := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
		if !was || !is {
			return true
		}
		return before.Generation != after.Generation || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			before.Annotations[resourcesv1alpha1.AnnotationIgnore] != after.Annotations[resourcesv1alpha1.AnnotationIgnore] ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	}}
}

// observe reads the inputs of conditions and constraints. It also returns the connection to the cluster, or nil if the
// API server does not run. Everything except the health of the API server comes from caches.
func (c *care) observe(ctx context.Context, shoot *corev1beta1.Shoot) (Observation, *connection, error) {
	c.remember(shoot)
	observation := Observation{
		Shoot: shoot, Required: c.options.Required, Limits: c.limits(), Now: c.options.Clock.Now(),
		Hibernated: hibernates(shoot),
	}
	var seed corev1beta1.Seed
	if err := c.garden.Get(ctx, client.ObjectKey{Name: c.options.SeedName}, &seed); err == nil { // otherwise the constraint stays as it is
		observation.Backup = c.backupOf(ctx, &seed, shoot)
	}
	if err := c.observeComponents(ctx, &observation); err != nil {
		return observation, nil, err
	}
	var err error
	if observation.Contributions, err = c.extensions.contributions(ctx, shoot); err != nil {
		return observation, nil, err
	}
	if workerpool.HasInPlace(shoot) {
		if observation.UpdatedInPlace, err = c.extensions.objects.UpdatedInPlace(ctx, shoot); err != nil {
			return observation, nil, err
		}
	}
	if observation.Authorities, err = c.options.Authorities(ctx, shoot.Status.TechnicalID); err != nil {
		return observation, nil, err
	}
	connection, err := c.observeCluster(ctx, &observation)
	return observation, connection, err
}

// hibernates reports whether the control plane of a Shoot is not expected to run. Once a wake-up has begun, it is, so that
// the conditions show if the wake-up fails. A hibernated Shoot is also woken up for its deletion.
func hibernates(shoot *corev1beta1.Shoot) bool {
	declared := shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
	begun := shoot.Status.ObservedGeneration == shoot.Generation
	return shoot.DeletionTimestamp == nil && (declared || shoot.Status.IsHibernated && !begun)
}

// observeComponents reads the ManagedResources of the control plane, sorted by name.
func (c *care) observeComponents(ctx context.Context, observation *Observation) error {
	namespace := observation.Shoot.Status.TechnicalID
	var list resourcesv1alpha1.ManagedResourceList
	if err := c.emitted.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ManagedResources in namespace %s: %w", namespace, err)
	}
	var own resourcesv1alpha1.ManagedResource
	err := c.emitted.Get(ctx, client.ObjectKey{Namespace: c.options.Namespace, Name: namespace}, &own, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the ManagedResource with namespace %s: %w", namespace, err)
	}
	observation.Components = list.Items
	if err == nil {
		observation.Components = append(observation.Components, own)
	}
	slices.SortFunc(observation.Components, func(a, b resourcesv1alpha1.ManagedResource) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// observeCluster requests the health of the API server, if it should run, and reads the relevant objects of the cluster.
func (c *care) observeCluster(ctx context.Context, observation *Observation) (*connection, error) {
	shoot := observation.Shoot
	name := client.ObjectKeyFromObject(shoot)
	runs := slices.ContainsFunc(observation.Components, func(mr resourcesv1alpha1.ManagedResource) bool {
		return mr.Name == c.options.Server && mr.DeletionTimestamp == nil
	})
	if runs && !observation.Hibernated {
		observation.Asked, observation.Error = c.options.Healthz(ctx, shoot)
	}
	if !observation.Asked {
		c.clusters.close(name)
		return nil, nil // there is nothing to watch
	}
	connection := c.clusters.present(name)
	if observation.Error == nil {
		access, err := c.options.Access(ctx, shoot)
		if err != nil || access == nil {
			return nil, err
		}
		connection, err = c.clusters.of(shoot, access, observation.Now) //nolint:contextcheck // the watch continues after this reconcile
		if err != nil {
			return nil, err
		}
	}
	if connection == nil {
		return nil, nil // the API server has not answered yet
	}
	var err error
	observation.Cluster, err = connection.read(ctx)
	return connection, err
}

package gardencare

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

// namespaces are those with the ManagedResources of a garden.
func namespaces() []string {
	return []string{constants.GardenNamespace, constants.IstioSystemNamespace}
}

// care writes the conditions of a Garden.
type care struct {
	client client.Client
	config v1alpha1.CareController
	clock  clock.PassiveClock
	// probe asks the API server of the virtual garden. connected is false if there is no kubeconfig for it.
	probe func(context.Context) (connected bool, err error)
}

// Reconcile computes the conditions, and writes them if they have changed. It repeats this, because nothing reports that an API server
// does not answer any more.
func (c *care) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	garden := &operatorv1alpha1.Garden{}
	if err := c.client.Get(ctx, request.NamespacedName, garden); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	o := Observation{Garden: garden, Thresholds: c.config.ConditionThresholds}
	for _, namespace := range namespaces() {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := c.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return reconcile.Result{}, fmt.Errorf("list the ManagedResources in namespace %s: %w", namespace, err)
		}
		o.Resources = append(o.Resources, list.Items...)
	}
	slices.SortFunc(o.Resources, func(a, b resourcesv1alpha1.ManagedResource) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	o.Connected, o.ServerError = c.probe(ctx)
	o.Now = c.clock.Now()
	conditions, next := o.Conditions()
	after := c.config.SyncPeriod.Duration
	if !next.IsZero() {
		after = min(after, max(next.Sub(o.Now), time.Millisecond))
	}
	if later := delay(garden.Status.Conditions, conditions, next, o.Now); later > 0 {
		return reconcile.Result{RequeueAfter: min(after, later)}, nil
	}
	if !equality.Semantic.DeepEqual(conditions, garden.Status.Conditions) {
		before := client.MergeFrom(garden.DeepCopy()) // only this controller writes conditions of Gardens
		garden.Status.Conditions = conditions
		if err := client.IgnoreNotFound(c.client.Status().Patch(ctx, garden, before, controller.FieldManager)); err != nil {
			return reconcile.Result{}, fmt.Errorf("write the conditions of Garden %s: %w", garden.Name, err)
		}
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// delay returns how long to delay a write, because only messages have changed: 0 if one condition must be written now.
func delay(before, after []corev1beta1.Condition, next, now time.Time) time.Duration {
	var longest time.Duration
	for _, condition := range after {
		old := corev1beta1.FindCondition(before, condition.Type)
		if old != nil && equality.Semantic.DeepEqual(*old, condition) {
			continue
		}
		later := readiness.Delay(old, condition, next, now)
		if later == 0 {
			return 0
		}
		longest = max(longest, later)
	}
	return longest
}

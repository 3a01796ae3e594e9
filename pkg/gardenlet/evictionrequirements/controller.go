// Package evictionrequirements restricts when the VerticalPodAutoscaler may evict Pods to reduce their resources: never,
// or only in the maintenance window of a Shoot. It patches VerticalPodAutoscalers with a label, regardless of who applies
// them. This is one of the few writes of gardenlet to the seed without a ManagedResource, because the wanted state
// depends on the time of day. In a seed that is also the runtime cluster of a garden, the operator does it.
package evictionrequirements

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/crdwatch"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

const (
	// ControllerName names the controller in logs and metrics.
	ControllerName = inventory.EvictionRequirements
	// ManagedByController is the value of the label of the VerticalPodAutoscalers.
	ManagedByController = "managed-by-controller"
	// Values of the annotation for the restriction.
	restrictionNever    = "never"
	restrictionInWindow = "in-maintenance-window-only"
)

var (
	autoscalers = schema.GroupVersionResource{Group: "autoscaling.k8s.io", Version: "v1", Resource: "verticalpodautoscalers"}
	// upscalingOnly are requirements that only permit evictions that increase resources.
	upscalingOnly = []requirement{{
		Resources: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}, ChangeRequirement: "TargetHigherThanRequests",
	}}
)

// requirement is an item of spec.updatePolicy.evictionRequirements.
type requirement struct {
	Resources         []corev1.ResourceName `json:"resources"`
	ChangeRequirement string                `json:"changeRequirement"`
}

// autoscaler contains the relevant fields of a VerticalPodAutoscaler.
type autoscaler struct {
	metav1.ObjectMeta
	requirements []requirement
}

// Reconciler patches VerticalPodAutoscalers. It is ready to use when its fields are set.
type Reconciler struct {
	Dynamic         dynamic.Interface
	Metadata        metadata.Interface
	Kinds           crdwatch.Kinds
	Clock           clock.PassiveClock
	ConcurrentSyncs int
	// FieldManager of the writes.
	FieldManager string
	// Facts report whether another program does this; nil if none does.
	Facts *seedfacts.Reader

	watch *crdwatch.Watch
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(source.Func(r.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.ConcurrentSyncs}).
		Complete(r)
}

// start watches VerticalPodAutoscalers while the seed defines the kind.
func (r *Reconciler) start(ctx context.Context, q queue) error {
	r.watch = crdwatch.New(crdwatch.Options{
		Dynamic: r.Dynamic, Metadata: r.Metadata, Kinds: r.Kinds, Namespaces: []string{metav1.NamespaceAll},
		Resource: autoscalers, Kind: "VerticalPodAutoscaler", LabelSelector: constants.LabelEvictionRequirements + "=" + ManagedByController,
		Reduce: reduce, OnKnown: func() {}, Affected: "eviction requirements",
		OnEvent: func(object any) {
			if found, ok := object.(*autoscaler); ok {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: found.Namespace, Name: found.Name}})
			}
		},
	})
	if r.Facts != nil {
		r.Facts.OnChange(func() {
			for _, object := range r.watch.List() {
				r.watch.OnEvent(object)
			}
		})
	}
	return r.watch.Start(ctx)
}

// othersDo reports whether another program sets the requirements in this cluster.
func (r *Reconciler) othersDo(ctx context.Context) (bool, error) {
	if r.Facts == nil {
		return false, nil
	}
	facts, err := r.Facts.Get(ctx)
	return facts.Cluster().IsOperators(inventory.EvictionRequirements), err
}

// reduce returns the relevant fields of a VerticalPodAutoscaler.
func reduce(object *unstructured.Unstructured) any {
	kept := &autoscaler{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Labels: object.GetLabels(), Annotations: object.GetAnnotations(),
	}}
	raw, _, err := unstructured.NestedSlice(object.Object, "spec", "updatePolicy", "evictionRequirements")
	if err != nil {
		return kept
	}
	content, err := json.Marshal(raw)
	if err == nil {
		_ = json.Unmarshal(content, &kept.requirements) // the API server has validated them
	}
	return kept
}

// Reconcile sets or removes the requirements, and requeues for the start or end of the maintenance window.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	found, ok := r.watch.Get(request.NamespacedName).(*autoscaler)
	if !ok {
		return reconcile.Result{}, nil
	}
	if others, err := r.othersDo(ctx); err != nil || others {
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	wanted, next, err := decide(found.Annotations, now)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("VerticalPodAutoscaler %s: %w", request.NamespacedName, err))
	}
	if !equality.Semantic.DeepEqual(wanted, found.requirements) {
		if err := r.patch(ctx, found, wanted); err != nil {
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return reconcile.Result{}, nil // the watch reports the current object
			}
			return reconcile.Result{}, fmt.Errorf("patch VerticalPodAutoscaler %s: %w", request.NamespacedName, err)
		}
		log.FromContext(ctx).Info("Changed the eviction requirements", "downscale", len(wanted) == 0)
	}
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: next.Sub(now)}, nil
}

// lastMinutes is how long before its end a maintenance window counts as over. An operation that began later would end outside the window.
const lastMinutes = 5 * time.Minute

// decide returns the requirements for the annotations, and when they change, or zero for never.
func decide(annotations map[string]string, now time.Time) ([]requirement, time.Time, error) {
	const annotation = constants.AnnotationEvictionRequirementsDownscaleRestriction
	switch value := annotations[annotation]; value {
	case restrictionNever:
		return upscalingOnly, time.Time{}, nil
	case restrictionInWindow:
		window, err := maintenance.ParseAnnotation(annotations[constants.AnnotationShootMaintenanceWindow])
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("the annotation %s: %w", constants.AnnotationShootMaintenanceWindow, err)
		}
		open, next := window.EndingEarlier(lastMinutes).State(now)
		if open {
			return nil, next, nil
		}
		return upscalingOnly, next, nil
	default:
		return nil, time.Time{}, fmt.Errorf("the annotation %s is %q, must be %s or %s", annotation, value, restrictionNever, restrictionInWindow)
	}
}

// patch writes the requirements unless the object has changed since it was read.
func (r *Reconciler) patch(ctx context.Context, found *autoscaler, wanted []requirement) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": found.ResourceVersion, "uid": found.UID},
		"spec":     map[string]any{"updatePolicy": map[string]any{"evictionRequirements": wanted}},
	})
	if err != nil {
		return err
	}
	_, err = r.Dynamic.Resource(autoscalers).Namespace(found.Namespace).Patch(ctx, found.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: r.FieldManager})
	return err
}

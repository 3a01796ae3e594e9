package shootreference

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/finalizer"
)

const (
	// pageSize is the number of objects that one request of the start lists.
	pageSize = 500
	// listRetry is the wait after a list that failed.
	listRetry = 2 * time.Second
)

// Controller returns the controllers of the objects that Shoots name.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "shoot-reference", Add: add,
		Keeps:   []controller.Keep{controller.Keeping(keep)},
		Indexes: []controller.Index{{Object: &corev1beta1.Shoot{}, Field: indexReference, Values: values}},
		Rights: []controller.Right{
			controller.May("finalizers of Shoots that name objects", corev1beta1.GroupName, []string{"shoots"}, "get", "list", "watch", "patch"),
			controller.May("finalizers of objects that Shoots name", "", []string{"secrets", "configmaps"}, "get", "list", "patch"),
			controller.May("finalizers of objects that Shoots name", securityv1alpha1.GroupName, []string{"workloadidentities"}, "get", "list", "patch"),
		},
	}
}

func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	holder := finalizer.Holder{Client: deps.Client, Uncached: deps.Live, Owner: controller.FieldManager}
	protectors := map[string]*protector{}
	syncs := deps.Config.ShootReference.ConcurrentSyncs
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		p := &protector{
			client: deps.Client, live: deps.Live, holder: holder, kind: kind,
			known: map[types.NamespacedName]bool{}, missing: map[types.NamespacedName]bool{},
		}
		protectors[kind] = p
		built, err := controller.Build(mgr, "shoot-reference-"+strings.ToLower(kind), p, syncs, controller.On(&corev1beta1.Shoot{}, p.handler(), nil))
		if err != nil {
			return err
		}
		if err := built.Watch(source.Func(p.start)); err != nil {
			return fmt.Errorf("list the %ss that may have the finalizer %s: %w", kind, constants.FinalizerReferenceProtection, err)
		}
	}
	return controller.Start(mgr, "shoot-reference", &shootReconciler{deps.Client, deps.Live, holder, protectors}, syncs,
		controller.Watch{Object: &corev1beta1.Shoot{}, Changed: controller.Changes(func(before, after *corev1beta1.Shoot) bool {
			return decide(before) != decide(after)
		})})
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// handler enqueues the objects that a Shoot names when it appears or disappears, and when that changes: also those that it named before.
func (p *protector) handler() handler.EventHandler {
	enqueue := func(q queue, namespace string, all ...reference) {
		for _, one := range all {
			if one.kind == p.kind {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: one.name}})
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if shoot, ok := e.Object.(*corev1beta1.Shoot); ok {
				enqueue(q, shoot.Namespace, of(shoot)...)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if shoot, ok := e.Object.(*corev1beta1.Shoot); ok {
				enqueue(q, shoot.Namespace, named(shoot)...)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, was := e.ObjectOld.(*corev1beta1.Shoot)
			after, is := e.ObjectNew.(*corev1beta1.Shoot)
			if !was || !is {
				return
			}
			old, current := of(before), of(after)
			if !slices.Equal(old, current) || before.UID != after.UID {
				enqueue(q, after.Namespace, append(old, current...)...)
				return
			}
			if stateOf(before) != stateOf(after) { // its gardenlet may have waited for an object that exists now
				enqueue(q, after.Namespace, slices.DeleteFunc(current, func(one reference) bool {
					return !p.isMissing(types.NamespacedName{Namespace: after.Namespace, Name: one.name})
				})...)
			}
		},
	}
}

func stateOf(shoot *corev1beta1.Shoot) corev1beta1.LastOperationState {
	if shoot.Status.LastOperation == nil {
		return ""
	}
	return shoot.Status.LastOperation.State
}

// start lists the objects that have the finalizer, before the first reconcile. It enqueues those outside of the namespace garden, where other
// controllers use the same finalizer: their Shoots may have been deleted or changed while this process was stopped.
func (p *protector) start(ctx context.Context, q queue) error {
	err := wait.PollUntilContextCancel(ctx, listRetry, true, func(ctx context.Context) (bool, error) {
		err := p.list(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Listing objects with finalizers failed, and is tried again")
		}
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for key := range p.known {
		if key.Namespace != constants.GardenNamespace {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return nil
}

// list reads the metadata of all objects of the kind, in pages, and remembers those with the finalizer.
func (p *protector) list(ctx context.Context) error {
	known := map[types.NamespacedName]bool{}
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		gvk := kinds[p.kind]
		gvk.Kind += "List"
		page.SetGroupVersionKind(gvk)
		if err := p.live.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return fmt.Errorf("list the metadata of all %ss: %w", p.kind, err)
		}
		for i := range page.Items {
			if controllerutil.ContainsFinalizer(&page.Items[i], constants.FinalizerReferenceProtection) {
				known[client.ObjectKeyFromObject(&page.Items[i])] = true
			}
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.known = known
	return nil
}

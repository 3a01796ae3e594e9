package extensioncare

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	frame "github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extension"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extensionstatus"
	"github.com/trellis-k8s/trellis/pkg/rights"
)

// Controller returns the controller of the health of Extensions.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "extension-care", When: controller.WithVirtual, Add: add,
		Rights: []rights.Right{
			rights.May("health of Extensions", operatorv1alpha1.GroupName, []string{"extensions"}, rights.Reads()...),
			rights.May("health of Extensions", operatorv1alpha1.GroupName, []string{"extensions/status"}, "patch"),
			rights.May("health of Extensions", resourcesv1alpha1.GroupName, []string{"managedresources"}, rights.Reads()...),
		},
	}
}

func add(_ context.Context, deps controller.Deps) error {
	mgr := deps.Manager
	c := &care{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), virtual: deps.Virtual.GetClient(), namespace: deps.Namespace,
		config: deps.Config.Controllers.ExtensionCare, clock: deps.Clock,
	}
	built, err := frame.Build(mgr, "extension-care", c, deps.Config.Controllers.ExtensionCare.ConcurrentSyncs,
		frame.On(&operatorv1alpha1.Extension{}, nil, frame.Changes(func(before, after *operatorv1alpha1.Extension) bool {
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
		})),
		frame.On(&resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), flow.EmittedBy(extension.FlowName)))
	if err != nil {
		return err
	}
	toExtension := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if installation, ok := object.(*corev1beta1.ControllerInstallation); ok {
			return frame.Requests(installation.Spec.RegistrationRef.Name)
		}
		return nil
	})
	return built.Watch(source.Kind[client.Object](deps.Virtual.GetCache(), &corev1beta1.ControllerInstallation{}, toExtension))
}

// care writes the conditions of Extensions.
type care struct {
	client, virtual client.Client
	live            client.Reader
	namespace       string
	config          v1alpha1.CareController
	clock           clock.PassiveClock
}

// Reconcile writes the conditions of an Extension if they have changed.
func (c *care) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	one := &operatorv1alpha1.Extension{}
	if err := c.client.Get(ctx, request.NamespacedName, one); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	o := Observation{
		Extension: one, Resources: map[string]*resourcesv1alpha1.ManagedResource{}, Thresholds: c.config.ConditionThresholds, Now: c.clock.Now(),
	}
	runtime, admission := Names(one)
	for _, name := range append(admission, runtime) {
		mr := &resourcesv1alpha1.ManagedResource{}
		switch err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, mr); {
		case err == nil:
			o.Resources[name] = mr
		case client.IgnoreNotFound(err) != nil:
			return reconcile.Result{}, fmt.Errorf("read ManagedResource %s/%s: %w", c.namespace, name, err)
		}
	}
	list := &corev1beta1.ControllerInstallationList{}
	if err := c.virtual.List(ctx, list); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the ControllerInstallations of the garden: %w", err)
	}
	o.Installations = list.Items
	var next time.Time
	err := extensionstatus.Write(ctx, c.client, c.live, one, func(status *operatorv1alpha1.ExtensionStatus) {
		status.Conditions, next = o.Apply(status.Conditions)
	})
	if err != nil || next.IsZero() {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(o.Now), time.Millisecond)}, nil
}

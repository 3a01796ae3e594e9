package extensionrequired

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	frame "github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/existingtypes"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/rights"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

func common() []rights.Right {
	return []rights.Right{
		rights.May("whether extensions are needed", operatorv1alpha1.GroupName, []string{"gardens", "extensions"}, rights.Reads()...),
		rights.May("whether extensions are needed", operatorv1alpha1.GroupName, []string{"extensions/status"}, "patch"),
	}
}

// Runtime returns the controller of the condition RequiredRuntime.
func Runtime() controller.Controller {
	return controller.Controller{
		Name: "extension-required-runtime", When: controller.WithGarden, Add: addRuntime,
		Rights: append(common(),
			rights.May("objects that need extensions", extensionsv1alpha1.SchemeGroupVersion.Group,
				[]string{"backupbuckets", "backupentries", "dnsrecords", "extensions"}, "list", "watch"),
			rights.May("whether the kinds of extension objects are defined", "apiextensions.k8s.io", []string{"customresourcedefinitions"}, "list", "watch"),
		),
	}
}

// Virtual returns the controller of the condition RequiredVirtual.
func Virtual() controller.Controller {
	return controller.Controller{Name: "extension-required-virtual", When: controller.WithVirtual, Add: addVirtual, Rights: common()}
}

func addRuntime(_ context.Context, deps controller.Deps) error {
	mgr := deps.Manager
	objects, err := target.NewObjects(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("connect to the runtime cluster: %w", err)
	}
	wake := watches.NewNotifier(1)
	watcher := existingtypes.New(existingtypes.Options{
		Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Served: objects, Kinds: runtimeKinds(), Changed: wake.Wake,
		Counts:   func(class string) bool { return class == string(extensionsv1alpha1.ExtensionClassGarden) },
		Affected: "the condition RequiredRuntime of Extensions",
	})
	if err := watcher.AddToManager(mgr); err != nil {
		return fmt.Errorf("add the watches of extension objects: %w", err)
	}
	decides := &runtime{mgr.GetClient(), watcher}
	w := &writer{client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: deps.Clock, decide: decides.decide}
	built, err := frame.Build(mgr, "extension-required-runtime", w, deps.Config.Controllers.ExtensionRequiredRuntime.ConcurrentSyncs,
		frame.On(&operatorv1alpha1.Extension{}, nil, changed()),
		frame.On(&operatorv1alpha1.Garden{}, toAll(mgr.GetClient()), frame.Changes(func(before, after *operatorv1alpha1.Garden) bool {
			return before.Generation != after.Generation
		})))
	if err != nil {
		return err
	}
	return built.Watch(wake.Source(func(ctx context.Context, _ client.Object) []reconcile.Request { return all(ctx, mgr.GetClient()) }))
}

func addVirtual(_ context.Context, deps controller.Deps) error {
	mgr := deps.Manager
	decides := &seeds{deps.Virtual.GetClient()}
	w := &writer{client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: deps.Clock, decide: decides.decide}
	built, err := frame.Build(mgr, "extension-required-virtual", w, deps.Config.Controllers.ExtensionRequiredVirtual.ConcurrentSyncs,
		frame.On(&operatorv1alpha1.Extension{}, nil, changed()))
	if err != nil {
		return err
	}
	toExtension := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if installation, ok := object.(*corev1beta1.ControllerInstallation); ok {
			return frame.Requests(installation.Spec.RegistrationRef.Name)
		}
		return nil
	})
	return built.Watch(source.Kind[client.Object](deps.Virtual.GetCache(), &corev1beta1.ControllerInstallation{}, toExtension,
		frame.Changes(func(before, after *corev1beta1.ControllerInstallation) bool {
			return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
		})))
}

// changed passes changes of what an Extension is responsible for.
func changed() predicate.Predicate {
	return frame.Changes(func(before, after *operatorv1alpha1.Extension) bool { return before.Generation != after.Generation })
}

func toAll(reader client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return all(ctx, reader) })
}

// all returns requests for all Extensions.
func all(ctx context.Context, reader client.Reader) []reconcile.Request {
	list := &operatorv1alpha1.ExtensionList{}
	if err := reader.List(ctx, list); err != nil {
		return nil // the process ends, or the watch of Extensions reports all once the cache is filled
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return frame.Requests(names...)
}

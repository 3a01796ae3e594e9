package projectstale

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/projectuse"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Controller returns the controller of stale Projects.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "project-stale", Add: add,
		Keeps: []controller.Keep{controller.Keeping(projectuse.Keep)},
		Rights: append(projectuse.Rights(),
			controller.May("deletes stale Projects", corev1beta1.GroupName, []string{"projects"}, "get", "list", "watch", "patch", "delete"),
			controller.May("timestamps of stale Projects", corev1beta1.GroupName, []string{"projects/status"}, "patch"),
			controller.May("the annotation that excludes a Project", "", []string{"namespaces"}, controller.Reads()...),
			controller.May("the time of the API server", authenticationv1.GroupName, []string{"selfsubjectreviews"}, "create"),
		),
	}
}

// periods returns the configured periods.
func periods(c *v1alpha1.Project) Periods {
	return Periods{
		MinimumLifetime: day * time.Duration(*c.MinimumLifetimeDays), Grace: day * time.Duration(*c.StaleGracePeriodDays),
		Expiration: day * time.Duration(*c.StaleExpirationTimeDays), Sync: c.StaleSyncPeriod.Duration,
	}
}

// add adds the controller to the manager of the garden.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	r := &reconciler{client: deps.Client, live: deps.Live, recorder: deps.Recorder, clock: deps.Clock, periods: periods(deps.Config.Project)}
	toProject := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if name := object.GetLabels()[constants.LabelProjectName]; name != "" {
			return controller.Requests(name)
		}
		return nil
	})
	return controller.Start(mgr, "project-stale", r, deps.Config.Project.ConcurrentSyncs,
		controller.Watch{Object: &corev1beta1.Project{}, Changed: controller.Changes(func(before, after *corev1beta1.Project) bool {
			return !equality.Semantic.DeepEqual(before.Spec.Namespace, after.Spec.Namespace) || !equality.Semantic.DeepEqual(before.Status, after.Status)
		})},
		controller.Watch{Object: watches.MetadataOf("Namespace"), Handler: toProject, Changed: predicate.AnnotationChangedPredicate{}},
	)
}

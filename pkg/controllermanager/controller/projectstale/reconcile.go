package projectstale

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/projectuse"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Reasons of Events.
//
// +events:on=Project
const (
	reasonDeleted = "StaleProjectDeleted" // Normal: the Project is deleted, because nothing has used it for a long time
	reasonKept    = "StaleProjectKept"    // Warning: the time of the deletion has come, but the clock or the number of stale Projects is implausible
)

const (
	// action is the action of these Events.
	action = "DeleteStale"
	// skew is the maximum difference between the clocks of this process and the API server for deletions.
	skew = time.Minute
)

// reconciler finds stale Projects. client reads from the cache and writes; live reads from the API server.
type reconciler struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	periods  Periods
}

// Reconcile writes the timestamps of a Project, deletes it if it is due, or comes back when the next decision is due. It reads from the
// cache; before a deletion, it decides again from what the API server has.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	project := &corev1beta1.Project{}
	if err := r.client.Get(ctx, request.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if project.DeletionTimestamp != nil || project.Spec.Namespace == nil {
		return reconcile.Result{}, nil
	}
	decision, err := r.decide(ctx, r.client, project)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.write(ctx, project, decision); err != nil {
		return reconcile.Result{}, err
	}
	if !decision.Delete {
		return reconcile.Result{RequeueAfter: decision.Next.Sub(r.clock.Now())}, nil
	}
	if err := r.live.Get(ctx, request.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if decision, err = r.decide(ctx, r.live, project); err != nil || !decision.Delete {
		return reconcile.Result{RequeueAfter: r.periods.Sync}, err
	}
	doubt, err := r.doubt(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if doubt != "" {
		r.recorder.Eventf(project, nil, corev1.EventTypeWarning, reasonKept, action, "The Project is stale, but not deleted: %s", doubt)
		return reconcile.Result{RequeueAfter: r.periods.Sync}, nil
	}
	return reconcile.Result{}, r.delete(ctx, project)
}

// decide reads the namespace of a Project and what uses it, and decides.
func (r *reconciler) decide(ctx context.Context, reader client.Reader, project *corev1beta1.Project) (Decision, error) {
	name := *project.Spec.Namespace
	namespace := watches.MetadataOf("Namespace")
	if err := client.IgnoreNotFound(reader.Get(ctx, client.ObjectKey{Name: name}, namespace)); err != nil {
		return Decision{}, fmt.Errorf("read Namespace %s of Project %s: %w", name, project.Name, err)
	}
	use, err := projectuse.Of(ctx, reader, name)
	if err != nil {
		return Decision{}, err
	}
	skipped, _ := strconv.ParseBool(namespace.Annotations[constants.AnnotationProjectSkipStaleCheck])
	return Decide(project, State{Skipped: skipped, Used: len(use.Shoots)+len(use.Others) > 0, Now: r.clock.Now()}, r.periods), nil
}

// write writes the timestamps of a decision, if they differ.
func (r *reconciler) write(ctx context.Context, project *corev1beta1.Project, decision Decision) error {
	status := project.Status
	if equality.Semantic.DeepEqual([]*metav1.Time{status.StaleSinceTimestamp, status.StaleAutoDeleteTimestamp}, []*metav1.Time{decision.StaleSince, decision.AutoDelete}) {
		return nil
	}
	// With the resourceVersion, the API server refuses a decision from an outdated cache.
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": project.UID, "resourceVersion": project.ResourceVersion},
		"status":   map[string]any{"staleSinceTimestamp": decision.StaleSince, "staleAutoDeleteTimestamp": decision.AutoDelete},
	})
	if err != nil {
		return fmt.Errorf("encode the timestamps of Project %s: %w", project.Name, err)
	}
	err = r.client.Status().Patch(ctx, project, client.RawPatch(types.MergePatchType, data), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write since when Project %s is stale: %w", project.Name, err)
	}
	return nil
}

// doubt returns why no Project must be deleted now; empty if there is no reason. A clock that is ahead would make all Projects stale.
func (r *reconciler) doubt(ctx context.Context) (string, error) {
	// The API server answers with its time.
	review := &authenticationv1.SelfSubjectReview{}
	if err := r.client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("read the clock of the API server: %w", err)
	}
	now := r.clock.Now()
	if difference := now.Sub(review.CreationTimestamp.Time); difference.Abs() > skew {
		return fmt.Sprintf("the clock of the controller-manager differs from that of the API server by %s", difference), nil
	}
	var all corev1beta1.ProjectList
	if err := r.live.List(ctx, &all); err != nil {
		return "", fmt.Errorf("list the Projects: %w", err)
	}
	if TooMany(all.Items, now) {
		return fmt.Sprintf("more than %d%% of all Projects are due to be deleted. Check the clock and the configuration, and delete by hand what is not needed",
			percentage), nil
	}
	return "", nil
}

// delete confirms the deletion of a Project and deletes it.
func (r *reconciler) delete(ctx context.Context, project *corev1beta1.Project) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": project.UID, "resourceVersion": project.ResourceVersion,
		"annotations": map[string]string{constants.AnnotationConfirmationDeletion: "true"},
	}})
	if err != nil {
		return fmt.Errorf("encode the confirmation: %w", err)
	}
	err = r.client.Patch(ctx, project, client.RawPatch(types.MergePatchType, data), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("confirm the deletion of stale Project %s: %w", project.Name, err)
	}
	condition := client.Preconditions{UID: &project.UID, ResourceVersion: &project.ResourceVersion}
	if err := client.IgnoreNotFound(r.client.Delete(ctx, project, condition)); err != nil {
		return fmt.Errorf("delete stale Project %s: %w", project.Name, err)
	}
	r.recorder.Eventf(project, nil, corev1.EventTypeNormal, reasonDeleted, action, "Nothing has used the Project since %s.", project.Status.StaleSinceTimestamp)
	log.FromContext(ctx).Info("Deleted a stale Project")
	return nil
}

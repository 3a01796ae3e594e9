package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/scheduler/decision"
)

// Reasons of Events.
//
// +events:on=Shoot
const (
	reasonScheduled = "SchedulingSuccessful" // Normal: the Shoot has a Seed
	reasonFailed    = "SchedulingFailed"     // Warning: no Seed is eligible; the message has the reasons
)

const (
	// action is the action of these Events.
	action = "Schedule"
	// failed begins the description of the last operation.
	failed = "Failed to schedule Shoot: "
)

// queue is the queue of the Shoots to decide on.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// reconciler assigns Shoots to Seeds.
type reconciler struct {
	// cached reads from the cache, garden reads and writes without one.
	cached   client.Reader
	garden   garden
	recorder events.EventRecorder
	clock    clock.PassiveClock
	strategy decision.Strategy
	ledger   *ledger
	waiting  *waiting

	counting sync.Mutex
	// queue is nil until the controller starts.
	queue atomic.Pointer[queue]
}

// Reconcile decides on a Shoot without a Seed, and binds it or reports the reasons. It returns an error only if a request failed.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if err := r.count(ctx); err != nil {
		return reconcile.Result{}, err
	}
	shoot := &corev1beta1.Shoot{}
	err := r.cached.Get(ctx, request.NamespacedName, shoot)
	if err == nil && r.ledger.reserved(shoot.UID) != "" {
		shoot, err = r.reread(ctx, shoot)
	}
	if err != nil || !responsible(shoot) {
		r.waiting.remove(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// Facts that change from here on wake the Shoot again.
	r.waiting.add(request.NamespacedName, refusal{open: true})
	question, project, err := r.question(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	var answer decision.Answer
	seed, bound := r.ledger.reserve(shoot, func(usage map[string]int) string {
		question.Usage = usage
		answer = decision.Decide(question)
		return answer.Seed
	})
	switch {
	case bound: // the cache does not show it yet
		r.waiting.remove(request.NamespacedName)
		return reconcile.Result{}, nil
	case seed == "":
		r.waiting.add(request.NamespacedName, refusal{answer: answer, project: project})
		return reconcile.Result{}, r.report(ctx, shoot, answer.Text())
	}
	err = r.bind(ctx, shoot, seed)
	if requeue.OnlyConflicts(err) { // the controller-manager changes new Shoots at the same time
		return reconcile.Result{RequeueAfter: requeue.AfterConflict}, nil
	}
	return reconcile.Result{}, err
}

// responsible reports whether this scheduler assigns a Shoot.
func responsible(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.SeedName == nil && shoot.DeletionTimestamp == nil && shoot.Labels[constants.LabelShootSelfHosted] != "true" &&
		ptr.Deref(shoot.Spec.SchedulerName, constants.DefaultSchedulerName) == constants.DefaultSchedulerName
}

// count counts the Shoots of each Seed without the cache, once. The cache can be older than the last bindings of the leader before.
func (r *reconciler) count(ctx context.Context) error {
	r.counting.Lock()
	defer r.counting.Unlock()
	if r.ledger.begun() {
		return nil
	}
	version, places, uids, err := r.garden.Count(ctx)
	if err != nil {
		return err
	}
	return r.ledger.begin(version, places, uids)
}

// reread reads a Shoot whose binding was sent, but whose result is not known.
func (r *reconciler) reread(ctx context.Context, before *corev1beta1.Shoot) (*corev1beta1.Shoot, error) {
	shoot, err := r.garden.Read(ctx, client.ObjectKeyFromObject(before))
	switch {
	case apierrors.IsNotFound(err) || err == nil && shoot.UID != before.UID:
		r.wake(lacksPlace(r.ledger.forget(before.UID)))
		return shoot, err
	case err != nil:
		return nil, fmt.Errorf("read Shoot %s/%s, whose binding has no known result: %w", before.Namespace, before.Name, err)
	}
	r.wake(lacksPlace(r.ledger.observe(shoot)))
	if !responsible(shoot) {
		r.wake(lacksPlace(r.ledger.release(shoot.UID)))
	}
	return shoot, nil
}

// question reads all that a decision depends on from the cache. The usage is missing.
func (r *reconciler) question(ctx context.Context, shoot *corev1beta1.Shoot) (*decision.Question, string, error) {
	var (
		seeds    corev1beta1.SeedList
		projects corev1beta1.ProjectList
		configs  corev1.ConfigMapList
	)
	profile, err := r.profile(ctx, shoot)
	if err := errors.Join(err,
		r.cached.List(ctx, &seeds, client.UnsafeDisableDeepCopy), r.cached.List(ctx, &projects, client.UnsafeDisableDeepCopy),
		r.cached.List(ctx, &configs, client.UnsafeDisableDeepCopy),
	); err != nil {
		return nil, "", fmt.Errorf("read the inputs for Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	question := &decision.Question{Shoot: shoot, Profile: profile, Strategy: r.strategy}
	for i := range seeds.Items {
		question.Seeds = append(question.Seeds, &seeds.Items[i])
	}
	for i := range projects.Items {
		if ptr.Deref(projects.Items[i].Spec.Namespace, "") == shoot.Namespace {
			question.Project = projects.Items[i].Name
		}
	}
	if profile != nil {
		var sorted []*corev1.ConfigMap
		for i := range configs.Items {
			sorted = append(sorted, &configs.Items[i])
		}
		slices.SortFunc(sorted, func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
		question.Regions = decision.RegionsFor(profile.Name, shoot.Spec.Region, sorted)
	}
	return question, question.Project, nil
}

// profile returns the CloudProfile of a Shoot, or the parent of its NamespacedCloudProfile. It is nil if one of them does not exist.
func (r *reconciler) profile(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.CloudProfile, error) {
	name := ptr.Deref(shoot.Spec.CloudProfileName, "")
	if reference := shoot.Spec.CloudProfile; reference != nil {
		name = reference.Name
		if reference.Kind == "NamespacedCloudProfile" {
			namespaced := &corev1beta1.NamespacedCloudProfile{}
			if err := r.cached.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, namespaced); err != nil {
				return nil, client.IgnoreNotFound(err)
			}
			name = namespaced.Spec.Parent.Name
		}
	}
	profile := &corev1beta1.CloudProfile{}
	if err := r.cached.Get(ctx, client.ObjectKey{Name: name}, profile); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return profile, nil
}

// bind sends the binding of a Shoot to the reserved Seed.
func (r *reconciler) bind(ctx context.Context, shoot *corev1beta1.Shoot, seed string) error {
	bound, err := r.garden.Bind(ctx, shoot, seed)
	switch {
	case err == nil:
		r.ledger.observe(bound)
		r.waiting.remove(client.ObjectKeyFromObject(shoot))
		r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, reasonScheduled, action, "Scheduled to seed '%s'", seed)
		return nil
	case unknown(err): // the reservation stays until a live read
		return fmt.Errorf("bind Shoot %s/%s to Seed %s: the result is not known: %w", shoot.Namespace, shoot.Name, seed, err)
	}
	r.wake(lacksPlace(r.ledger.release(shoot.UID)))
	if apierrors.IsNotFound(err) {
		return nil
	}
	err = fmt.Errorf("bind Shoot %s/%s to Seed %s: %w", shoot.Namespace, shoot.Name, seed, err)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return errors.Join(err, r.report(ctx, shoot, fmt.Sprintf("the API server refuses Seed %s: %v", seed, errors.Unwrap(err))))
	}
	return err
}

// report writes why a Shoot has no Seed, unless its status has the same text already.
func (r *reconciler) report(ctx context.Context, shoot *corev1beta1.Shoot, text string) error {
	text = failed + text
	if last := shoot.Status.LastOperation; last != nil && last.Type == corev1beta1.LastOperationTypeCreate &&
		last.State == corev1beta1.LastOperationStatePending && last.Description == text {
		return nil
	}
	err := r.garden.Report(ctx, shoot, corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStatePending, Description: text,
		LastUpdateTime: metav1.NewTime(r.clock.Now()),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report why Shoot %s/%s has no Seed: %w", shoot.Namespace, shoot.Name, err)
	}
	r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, reasonFailed, action, "%s", text)
	return nil
}

// wake decides again on waiting Shoots.
func (r *reconciler) wake(match func(types.NamespacedName, refusal) bool) {
	queue := r.queue.Load()
	if queue == nil {
		return
	}
	for _, key := range r.waiting.matching(match) {
		(*queue).Add(reconcile.Request{NamespacedName: key})
	}
}

// Package agentdelay spreads the work of node agents over time. It sets an annotation on each Node with the delay
// before its agent reconciles, so that the agents do not all access the API server at once.
//
// It watches Nodes and the metadata of the Secrets of node agents. Its only requests are one patch for each annotation
// that has to change.
package agentdelay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nodepkg "github.com/trellis-k8s/trellis/pkg/node"
)

const (
	// ControllerName names the controller in logs and metrics.
	ControllerName = "node-agent-reconciliation-delay"

	// requestTimeout limits the time of each request.
	requestTimeout = time.Minute
	// parallel is the number of Nodes that are patched concurrently. Other clients need the API server too.
	parallel = 10
	// maxErrors is the maximum number of errors in the result of a run.
	maxErrors = 5
)

// Options are the settings of the controller.
type Options struct {
	// MinDelay is the delay of the first node.
	MinDelay time.Duration
	// MaxDelay is the upper bound of the delays. No node reaches it unless it equals MinDelay.
	MaxDelay time.Duration
	// KeepDelays keeps current delays as long as they are spread evenly enough.
	KeepDelays bool
}

// Reconciler spreads the delays.
type Reconciler struct {
	// Nodes caches the Nodes, reduced by package node.
	Nodes cache.Cache
	// Secrets caches the Secrets of node agents. It is a cache with CacheOptions.
	Secrets cache.Cache
	// Client writes to the target cluster.
	Client client.Client
	// Metrics may be the zero value.
	Metrics Metrics
	Clock   clock.PassiveClock
	Options Options
}

// Reconcile computes the delays of all nodes and changes those that differ. The error names some of the nodes that
// could not be changed.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	present, err := r.present(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := r.wanted(present)
	changes := differing(present, wanted)
	if len(changes) == 0 {
		r.Metrics.spread(len(present), 0, 0)
		return reconcile.Result{}, nil
	}
	started := r.Clock.Now()
	outdated, failures := r.change(ctx, changes)
	changed := len(changes) - outdated - len(failures)
	r.Metrics.spread(len(present), changed, len(failures))
	log.FromContext(ctx).Info("Spread the delays of node agents", "nodes", len(present), "changed", changed,
		"changedMeanwhile", outdated, "failed", len(failures), "duration", r.Clock.Since(started).String())
	switch {
	case len(failures) > 0:
		return reconcile.Result{}, fmt.Errorf("%d of %d delays of node agents could not be changed: %w", len(failures), len(changes),
			errors.Join(failures[:min(len(failures), maxErrors)]...))
	case outdated > 0:
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	default:
		return reconcile.Result{}, nil
	}
}

func (r *Reconciler) wanted(present []nodeDelay) []nodeDelay {
	if r.Options.KeepDelays && r.Options.MinDelay < r.Options.MaxDelay {
		return keep(present, r.Options.MinDelay, r.Options.MaxDelay)
	}
	return spread(present, r.Options.MinDelay, r.Options.MaxDelay)
}

// present returns the nodes over which delays are spread, with their current delays.
func (r *Reconciler) present(ctx context.Context) ([]nodeDelay, error) {
	secrets := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	if err := r.Secrets.List(ctx, secrets, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Secrets of node agents: %w", err)
	}
	serial := sets.New[string]()
	for i := range secrets.Items {
		if isSerial(&secrets.Items[i]) {
			serial.Insert(secrets.Items[i].Name)
		}
	}
	nodes := &corev1.NodeList{}
	if err := r.Nodes.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	present := make([]nodeDelay, 0, len(nodes.Items))
	for i := range nodes.Items {
		if secret := nodes.Items[i].Labels[LabelSecretName]; secret == "" || !serial.Has(secret) {
			present = append(present, nodeDelay{nodes.Items[i].Name, nodes.Items[i].Annotations[nodepkg.AnnotationReconciliationDelay]})
		}
	}
	return present, nil
}

// change patches Nodes. It returns the number of Nodes that the cache shows in an outdated version, and an error for
// each other Node that could not be patched.
func (r *Reconciler) change(ctx context.Context, changes []nodeDelay) (outdated int, failures []error) {
	var (
		mu    sync.Mutex
		group errgroup.Group
	)
	group.SetLimit(parallel)
	for _, change := range changes {
		group.Go(func() error {
			err := r.patch(ctx, change)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsConflict(err):
				outdated++
			case err != nil:
				failures = append(failures, err)
			}
			return nil
		})
	}
	_ = group.Wait() // every error is among the failures
	return outdated, failures
}

// patch sets the annotation of a Node, if the Node has not changed since the cached version. The response contains only
// metadata.
func (r *Reconciler) patch(ctx context.Context, change nodeDelay) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cached := &corev1.Node{}
	if err := r.Nodes.Get(ctx, client.ObjectKey{Name: change.name}, cached); err != nil {
		return client.IgnoreNotFound(err)
	}
	node := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: cached.Name, ResourceVersion: cached.ResourceVersion, Annotations: cached.Annotations},
	}
	before := node.DeepCopy()
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, nodepkg.AnnotationReconciliationDelay, change.delay)
	err := r.Client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("set the annotation %s of Node %s: %w", nodepkg.AnnotationReconciliationDelay, change.name, err)
	}
	return nil
}

// Package highavailability makes the webhook for high availability re-evaluate workloads when the second node of a
// cluster is added or removed. The webhook requires Pods to be on different nodes only if there is more than one node.
// It is called when a workload is written, but a change of the number of nodes writes no workloads.
//
// It watches Nodes. It reads workloads when the number of nodes crosses the threshold, and at startup. Workloads that
// the webhook would change get an empty patch, which changes nothing by itself.
package highavailability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/metrics"
)

const (
	// ControllerName names the controller in logs and metrics, as in gardener-resource-manager.
	ControllerName = "node-high-availability-config"

	// requestTimeout limits the time of each request.
	requestTimeout = time.Minute
	// parallel is the number of workloads that are patched concurrently.
	parallel = 5
	// maxNamed is the maximum number of workloads or errors in a message.
	maxNamed = 5
)

// againAfter are the delays before workloads are patched again that the webhook left unchanged. The replica that served
// the request might not have known the node yet.
var againAfter = []time.Duration{5 * time.Second, 30 * time.Second}

// Options are the settings of the controller.
type Options struct {
	// Namespaces are the namespaces of the target cluster to which it is restricted; empty for all.
	Namespaces []string
}

// Reconciler triggers the webhook.
type Reconciler struct {
	// Nodes caches the Nodes. Only their number matters.
	Nodes cache.Cache
	// Reader reads the target cluster without a cache.
	Reader client.Reader
	// Client writes to the target cluster.
	Client client.Client
	// Metrics may be nil.
	Metrics *metrics.Counter
	Clock   clock.PassiveClock
	Options Options

	// settled is whether the workloads are known to fit several nodes (true) or one node (false); nil at startup. There is
	// only one worker, so no lock is needed.
	settled *bool
	// attempted is the last value that workloads did not fit even after a patch. attempts counts the patches, and again is
	// the time of the next one.
	attempted bool
	attempts  int
	again     time.Time
}

// inScope reports whether the workloads of a namespace are patched.
func (r *Reconciler) inScope(namespace string) bool {
	return len(r.Options.Namespaces) == 0 || slices.Contains(r.Options.Namespaces, namespace)
}

// Reconcile patches the workloads that do not fit the number of nodes after it crossed the threshold. The error names
// some of the workloads that could not be patched.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	nodes := &corev1.NodeList{}
	if err := r.Nodes.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Nodes: %w", err)
	}
	several := len(nodes.Items) > 1
	if r.settled != nil && *r.settled == several {
		r.attempts = 0
		return reconcile.Result{}, nil
	}
	if r.attempted != several {
		r.attempted, r.attempts = several, 0
	}
	if early := r.again.Sub(r.Clock.Now()); r.attempts > 0 && early > 0 {
		return reconcile.Result{RequeueAfter: early}, nil
	}
	unfit, err := r.unfit(ctx, several)
	if err != nil {
		return reconcile.Result{}, err
	}
	unchanged, failures := r.patchAll(ctx, unfit, several)
	if len(unfit) > 0 {
		log.FromContext(ctx).Info("Patched workloads for re-evaluation by the high-availability webhook", "nodes", len(nodes.Items),
			"workloads", len(unfit), "unchanged", len(unchanged), "failed", len(failures))
	}
	if len(failures) > 0 {
		return reconcile.Result{}, fmt.Errorf("%d of %d workloads could not be patched: %w", len(failures), len(unfit),
			errors.Join(failures[:min(len(failures), maxNamed)]...))
	}
	if len(unchanged) > 0 && r.attempts < len(againAfter) {
		pause := againAfter[r.attempts]
		r.attempts, r.again = r.attempts+1, r.Clock.Now().Add(pause)
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	if len(unchanged) > 0 {
		log.FromContext(ctx).Info("The high-availability webhook does not change workloads whose topology spread constraint does not match "+
			"the number of nodes; does its configuration select them?",
			"workloads", len(unchanged), "for example", unchanged[:min(len(unchanged), maxNamed)])
	}
	r.settled, r.attempts = ptr.To(several), 0
	return reconcile.Result{}, nil
}

// patchAll patches workloads. It returns those that still do not fit, and an error for each workload that could not be
// patched.
func (r *Reconciler) patchAll(ctx context.Context, workloads []workload, several bool) (unchanged []string, failures []error) {
	var (
		mu    sync.Mutex
		group errgroup.Group
	)
	group.SetLimit(parallel)
	for _, one := range workloads {
		group.Go(func() error {
			name := kindOf(one.object) + " " + client.ObjectKeyFromObject(one.object).String()
			// The response of the API server replaces the object.
			err := within(ctx, func(ctx context.Context) error {
				return r.Client.Patch(ctx, one.object, client.RawPatch(types.MergePatchType, []byte("{}")))
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				failures = append(failures, fmt.Errorf("patch %s: %w", name, err))
			case !one.fits(several):
				unchanged = append(unchanged, name)
			}
			r.Metrics.Inc(kindOf(one.object), resultOf(err))
			return nil
		})
	}
	_ = group.Wait() // every error is among the failures
	slices.Sort(unchanged)
	return unchanged, failures
}

// within calls a function with a time limit.
func within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return do(ctx)
}

// Package controller writes the NetworkPolicies that package netpol computes to the target cluster.
package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	networkingv1client "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/crdwatch"
	"github.com/trellis-k8s/trellis/pkg/fight"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/ownedobject"
)

// ControllerName names the controller in logs and metrics.
const ControllerName = "network-policy"

const (
	// requestTimeout limits the time of each request.
	requestTimeout = 30 * time.Second
	// recheckDelay is when a Service is reconciled again after a write, in case the watches never show the result.
	recheckDelay = writesMemory + 5*time.Second
)

// Options are the settings of the controller.
type Options struct {
	// Config configures the policies.
	Config netpol.Config
	// OnlyWhilePodsExist creates policies between Pods only while there are Pods with the corresponding label.
	OnlyWhilePodsExist bool
	// Namespaces are the namespaces of the target cluster that are watched and written to; empty for all.
	Namespaces []string
	// ConcurrentSyncs is the number of Services that are reconciled concurrently.
	ConcurrentSyncs int
}

// Reconciler maintains the NetworkPolicies of Services.
type Reconciler struct {
	// Cache is created with CacheOptions.
	Cache cache.Cache
	// Policies writes NetworkPolicies of the target cluster.
	Policies networkingv1client.NetworkPoliciesGetter
	// Pods reads Pods of Services with named ports.
	Pods corev1client.PodsGetter
	// Dynamic, Metadata and Kinds read the objects of Istio, if it is installed.
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Kinds    crdwatch.Kinds
	// Recorder writes Events of the target cluster.
	Recorder events.EventRecorder
	// Metrics may be the zero value.
	Metrics Metrics
	Clock   clock.Clock
	Options Options

	istio    *istio
	writes   *writes
	fights   *fight.Detector[types.NamespacedName]
	reported *reportedProblems
	ports    *knownPorts
}

// NewReconciler completes a reconciler whose exported fields are set.
func NewReconciler(r Reconciler) *Reconciler {
	r.writes, r.fights = newWrites(len(r.Options.Namespaces) > 0), fight.New[types.NamespacedName]()
	r.reported, r.ports = newReportedProblems(), newKnownPorts()
	r.istio = newIstio(r.Dynamic, r.Metadata, r.Kinds, r.Options.Namespaces)
	return &r
}

// Reconcile creates, updates and deletes the policies of a Service, which may no longer exist.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	existing, err := r.existing(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	service, result, err := r.desired(ctx, request.NamespacedName, existing)
	if err != nil {
		return reconcile.Result{}, err
	}
	todo := r.plan(result, existing)
	todo.unseen = r.writes.pending(request.NamespacedName)
	failures := r.write(ctx, todo)
	problems := slices.Concat(result.Problems, r.missingPorts(ctx, service, request.NamespacedName, result))
	r.createEvents(service, request.NamespacedName, problems)
	if err := ownedobject.Join(failures); err != nil {
		return reconcile.Result{}, fmt.Errorf("policies of Service %s: %w", request.NamespacedName, err)
	}
	return reconcile.Result{RequeueAfter: todo.again()}, nil
}

// existing returns the policies with the labels of a Service, from the cache and from writes that the cache does not
// show yet.
func (r *Reconciler) existing(
	ctx context.Context, service types.NamespacedName,
) (map[types.NamespacedName]*networkingv1.NetworkPolicy, error) {
	written := r.writes.of(service, r.Clock.Now())
	var list networkingv1.NetworkPolicyList
	if err := r.Cache.List(ctx, &list, lookup(indexService, service.String(), "")...); err != nil {
		return nil, fmt.Errorf("list the policies of Service %s: %w", service, err)
	}
	existing := make(map[types.NamespacedName]*networkingv1.NetworkPolicy, len(list.Items))
	for i := range list.Items {
		existing[keyOf(&list.Items[i])] = &list.Items[i]
	}
	overlay(existing, written)
	return existing, nil
}

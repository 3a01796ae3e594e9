// Package controller writes the EnvoyFilters that package istiocluster computes to the target cluster.
package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/crdwatch"
	"github.com/trellis-k8s/trellis/pkg/fight"
	"github.com/trellis-k8s/trellis/pkg/istiocluster"
	"github.com/trellis-k8s/trellis/pkg/metrics"
	"github.com/trellis-k8s/trellis/pkg/ownedobject"
)

// ControllerName names the controller in logs and metrics.
const ControllerName = "istio-cluster-configuration"

// requestTimeout limits the time of each request.
const requestTimeout = 30 * time.Second

// Options are the settings of the controller.
type Options struct {
	// Namespaces are the namespaces of the target cluster that are watched and written to; empty for all.
	Namespaces []string
	// ConcurrentSyncs is the number of namespaces with DestinationRules that are reconciled concurrently.
	ConcurrentSyncs int
}

// Reconciler reconciles the EnvoyFilters for a namespace with DestinationRules.
type Reconciler struct {
	// Cache is created with CacheOptions.
	Cache cache.Cache
	// Dynamic, Metadata and Kinds read and write the objects of Istio, if it is installed.
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Kinds    crdwatch.Kinds
	// Metrics may be nil.
	Metrics *metrics.Counter
	Clock   clock.Clock
	Options Options

	rules, filters *crdwatch.Watch
	fights         *fight.Detector[types.NamespacedName]

	mu sync.Mutex
	// queue enqueues namespaces; nil until the controller starts.
	queue func(sources ...string)
}

// NewReconciler completes a reconciler whose exported fields are set.
func NewReconciler(r *Reconciler) *Reconciler {
	r.fights = fight.New[types.NamespacedName]()
	r.watchIstio()
	return r
}

func (r *Reconciler) setEnqueue(queue func(...string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = queue
}

func (r *Reconciler) enqueue(sources ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue != nil {
		r.queue(sources...)
	}
}

// Reconcile creates, updates and deletes the EnvoyFilters for a namespace, which may no longer exist.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.rules.Known() || !r.filters.Known() || !r.filters.Exists() {
		return reconcile.Result{}, nil // when this changes, announce enqueues all namespaces
	}
	desired, err := r.desired(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	var wait time.Duration
	var failures []error
	for _, one := range differences(desired, r.existing(request.Name)) {
		if delay := r.fights.Wait(one.key(), one.digest(), r.Clock.Now()); delay > 0 {
			if wait == 0 || delay < wait {
				wait = delay
			}
			continue
		}
		if err := r.write(ctx, one); err != nil {
			failures = append(failures, err)
		}
	}
	if err := ownedobject.Join(failures); err != nil {
		return reconcile.Result{}, fmt.Errorf("DestinationRules of namespace %s: %w", request.Name, err)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// desired returns the desired EnvoyFilters for a namespace. It reads only from caches.
func (r *Reconciler) desired(ctx context.Context, name string) ([]*unstructured.Unstructured, error) {
	rules := r.rules.ByIndex(toolscache.NamespaceIndex, name)
	if len(rules) == 0 {
		return nil, nil
	}
	namespace := &corev1.Namespace{}
	if err := r.Cache.Get(ctx, types.NamespacedName{Name: name}, namespace); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Namespace %s: %w", name, err)
	}
	if isTerminating(namespace) {
		return nil, nil
	}
	source := istiocluster.Source{Name: name, UID: namespace.UID, Services: map[types.NamespacedName]istiocluster.Service{}}
	for _, object := range rules {
		rule, ok := object.(*istiocluster.Rule)
		if !ok || rule.Service.Name == "" || r.outOfScope(rule.Service.Namespace) {
			continue
		}
		source.Rules = append(source.Rules, rule)
		service := &corev1.Service{}
		if err := r.Cache.Get(ctx, rule.Service, service); err == nil {
			source.Services[rule.Service] = istiocluster.ReadService(service)
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read Service %s: %w", rule.Service, err)
		}
	}
	ingresses, err := r.ingresses(ctx)
	if err != nil {
		return nil, err
	}
	return istiocluster.Desired(source, ingresses), nil
}

// outOfScope reports whether a namespace is not watched.
func (r *Reconciler) outOfScope(namespace string) bool {
	return len(r.Options.Namespaces) > 0 && !slices.Contains(r.Options.Namespaces, namespace)
}

// ingresses returns the namespaces with ingress gateways.
func (r *Reconciler) ingresses(ctx context.Context) ([]string, error) {
	var names []string
	for _, label := range []client.ListOption{
		client.MatchingLabels{istiocluster.LabelRole: istiocluster.RoleIstioIngress}, client.HasLabels{istiocluster.LabelExposureClass},
	} {
		var list corev1.NamespaceList
		if err := r.Cache.List(ctx, &list, label); err != nil {
			return nil, fmt.Errorf("look up the namespaces with ingress gateways: %w", err)
		}
		for i := range list.Items {
			if !isTerminating(&list.Items[i]) && !r.outOfScope(list.Items[i].Name) {
				names = append(names, list.Items[i].Name)
			}
		}
	}
	return names, nil
}

// existing returns the EnvoyFilters for a namespace that exist in the cluster.
func (r *Reconciler) existing(source string) []*filter {
	var filters []*filter
	for _, object := range r.filters.ByIndex(indexSource, source) {
		if one, ok := object.(*filter); ok {
			filters = append(filters, one)
		}
	}
	slices.SortFunc(filters, func(a, b *filter) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return filters
}

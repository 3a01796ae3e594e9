package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sites "github.com/trellis-k8s/trellis/examples/flow"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/measure"
)

const (
	siteName = "site"
	// changedApp is the app whose message is changed. It belongs to one bundle of a site.
	changedApp = "app"
	// inFlight is the number of concurrent requests of the sites' users.
	inFlight = 16
)

// fleet acts as the users of the sites, and as the extension for networks.
type fleet struct {
	options options
	client  client.Client
	stop    context.CancelFunc
	failed  chan error

	mu    sync.Mutex
	sites map[string]bool
	mrs   map[string]managedResource
	// rolling counts the ManagedResources that are not rolled out. MostRolling is its maximum since the last reset.
	rolling, mostRolling int
}

// managedResource is the last seen state of a ManagedResource.
type managedResource struct {
	generation int64
	rolledOut  bool
	version    string
}

func newFleet(ctx context.Context, config *rest.Config, opts options) (*fleet, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config = measure.WithAgent(config, "fleet")
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	watches, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{sites.LabelSite: "true"})},
	}})
	if err != nil {
		return nil, fmt.Errorf("create watches: %w", err)
	}
	f := &fleet{options: opts, client: c, failed: make(chan error, 1), sites: map[string]bool{}, mrs: map[string]managedResource{}}
	ctx, f.stop = context.WithCancel(ctx)
	networks := &unstructured.Unstructured{}
	networks.SetGroupVersionKind(sites.NetworkKind)
	answers := make(chan *unstructured.Unstructured, opts.Owners)
	for object, handle := range map[client.Object]func(object any, exists bool){
		&corev1.ConfigMap{}:                  f.seeSite,
		&resourcesv1alpha1.ManagedResource{}: f.seeManagedResource,
		networks: func(object any, exists bool) {
			if u, ok := object.(*unstructured.Unstructured); ok && exists {
				answers <- u
			}
		},
	} {
		informer, err := watches.GetInformer(ctx, object)
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		if _, err := informer.AddEventHandler(handler(handle)); err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
	}
	go func() { f.fail(watches.Start(ctx)) }()
	for range inFlight {
		go f.answer(ctx, answers)
	}
	return f, nil
}

func handler(handle func(object any, exists bool)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(object, true) },
		UpdateFunc: func(_, object any) { handle(object, true) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			handle(object, false)
		},
	}
}

// fail records the first error of a background task.
func (f *fleet) fail(err error) {
	if err == nil {
		return
	}
	select {
	case f.failed <- err:
	default:
	}
}

func (f *fleet) err() error {
	select {
	case err := <-f.failed:
		return err
	default:
		return nil
	}
}

func (f *fleet) seeSite(object any, exists bool) {
	site, ok := object.(*corev1.ConfigMap)
	if !ok {
		return
	}
	var report flow.Report
	if text := site.Annotations[sites.AnnotationReport]; text != "" {
		f.fail(json.Unmarshal([]byte(text), &report))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !exists {
		delete(f.sites, site.Namespace)
		return
	}
	f.sites[site.Namespace] = report.LastOperation.State == corev1beta1.LastOperationStateSucceeded
}

func (f *fleet) seeManagedResource(object any, exists bool) {
	mr, ok := object.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return
	}
	key := mr.Namespace + "/" + mr.Name
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, known := f.mrs[key]; known && !before.rolledOut {
		f.rolling--
	}
	if !exists {
		delete(f.mrs, key)
		return
	}
	seen := managedResource{
		generation: mr.Generation, version: mr.Annotations[flow.AnnotationVersion],
		rolledOut: flow.FleetOf([]resourcesv1alpha1.ManagedResource{*mr}, "").Rolling == 0,
	}
	if !seen.rolledOut {
		f.rolling++
		f.mostRolling = max(f.mostRolling, f.rolling)
	}
	f.mrs[key] = seen
}

// answer acts as the extension: it reports the addresses of networks.
func (f *fleet) answer(ctx context.Context, networks <-chan *unstructured.Unstructured) {
	for {
		select {
		case <-ctx.Done():
			return
		case network := <-networks:
			if observed, _, _ := unstructured.NestedInt64(network.Object, "status", "observedGeneration"); observed == network.GetGeneration() ||
				network.GetDeletionTimestamp() != nil {
				continue
			}
			patch, err := json.Marshal(map[string]any{"status": map[string]any{
				"observedGeneration": network.GetGeneration(), "egressCIDRs": []string{"10.0.0.0/16"},
				"lastOperation": map[string]any{
					"state": "Succeeded", "type": "Reconcile", "progress": 100, "description": "done",
					"lastUpdateTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
				},
			}})
			if err == nil {
				network = network.DeepCopy()
				err = client.IgnoreNotFound(f.client.Status().Patch(ctx, network, client.RawPatch("application/merge-patch+json", patch)))
			}
			if err != nil && ctx.Err() == nil {
				f.fail(fmt.Errorf("report the addresses of network %s: %w", network.GetNamespace(), err))
			}
		}
	}
}

// forEach calls do for each site, some concurrently. It stops at the first error.
func (f *fleet) forEach(ctx context.Context, do func(ctx context.Context, number int) error) error {
	return f.forSome(ctx, 0, f.options.Owners, do)
}

// forSome does the same for the sites from one number up to, but excluding, another.
func (f *fleet) forSome(ctx context.Context, from, to int, do func(ctx context.Context, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for i := from; i < to; i++ {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}

func namespaceOf(number int) string { return fmt.Sprintf("site-%05d", number) }

func (f *fleet) createNamespaces(ctx context.Context) error {
	return f.forEach(ctx, func(ctx context.Context, i int) error {
		return f.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}})
	})
}

func site(number int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespaceOf(number), Name: siteName, Labels: map[string]string{sites.LabelSite: "true"},
	}}
}

// declare creates a site.
func (f *fleet) declare(ctx context.Context, number int) error {
	object := site(number)
	object.Data = map[string]string{
		"type": "local", "region": "here", "zones": "a,b", "message": "hello", "apps": strconv.Itoa(f.options.Bundles - leastBundles + 1),
	}
	return f.client.Create(ctx, object)
}

// change changes the message of one app of a site.
func (f *fleet) change(ctx context.Context, number int, message string) error {
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, changedApp, message)
	return f.client.Patch(ctx, site(number), client.RawPatch("application/merge-patch+json", patch))
}

// delete deletes a site.
func (f *fleet) delete(ctx context.Context, number int) error {
	return f.client.Delete(ctx, site(number))
}

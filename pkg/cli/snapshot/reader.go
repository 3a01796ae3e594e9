package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const (
	// inFlight is the maximum number of concurrent requests. An API server processes this many of one client without
	// slowing down.
	inFlight = 16
	// listFrom is the number of objects of one kind and namespace from which they are listed instead of read one by one.
	listFrom = 8
	// everywhereFrom is the number of namespaces from which a kind is listed in all namespaces at once.
	everywhereFrom = 8
	// pageSize is the number of whole objects per list request. metadataPageSize is that for metadata, which is small:
	// each page
	// costs a round trip during which nothing is decoded.
	pageSize         = 500
	metadataPageSize = 2000
)

// Reader reads objects, and records what the user may not read. It is used for one command.
type Reader struct {
	target   *console.Target
	examiner *health.Examiner
	// owners are the ManagedResources whose own health checks apply.
	owners map[types.NamespacedName]*resourcesv1alpha1.ManagedResource
	// count is called with the number of objects that were read.
	count func(int)

	mu     sync.Mutex
	total  int
	unseen map[string]bool
}

// NewReader returns a reader for objects of ManagedResources. Progress receives the number of objects that were read.
func NewReader(target *console.Target, owners []resourcesv1alpha1.ManagedResource, progress func(int)) *Reader {
	r := &Reader{
		target: target, examiner: health.NewExaminer(health.OtherKindsFailuresOnly, nil),
		owners: map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{}, count: progress, unseen: map[string]bool{},
	}
	for i := range owners {
		name := types.NamespacedName{Namespace: owners[i].Namespace, Name: owners[i].Name}
		r.owners[name] = &owners[i]
		r.setOwn(name.String(), name) // so that the bodies of the kinds in its health checks are read
	}
	return r
}

// setOwn registers the health checks of a ManagedResource for the objects of an origin. It ignores invalid checks,
// because the
// resource-manager reports them in a condition.
func (r *Reader) setOwn(origin string, owner types.NamespacedName) {
	if mr := r.owners[owner]; mr != nil {
		_, _ = r.examiner.SetOwn(origin, mr.Spec.HealthChecks)
	}
}

// Unseen names the objects that could not be read, mostly because of missing permissions, sorted.
func (r *Reader) Unseen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.unseen))
}

func (r *Reader) addUnseen(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unseen[fmt.Sprintf(format, args...)] = true
}

func (r *Reader) addRead(count int) {
	r.mu.Lock()
	r.total += count
	total := r.total
	r.mu.Unlock()
	r.count(total)
}

// place is a kind in a namespace, or in all namespaces if the namespace is empty.
type place struct {
	schema.GroupVersionKind
	namespace string
}

// Read returns the state of all objects in refs. It never fails as a whole.
func (r *Reader) Read(ctx context.Context, refs []object.Ref) map[object.Key]*Object {
	found := map[object.Key]*Object{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(inFlight)
	for _, place := range placesOf(refs) {
		group.Go(func() error {
			// An object may have no label, if its manifest requests that. Objects that are not found here are read one by one.
			objects, err := r.list(ctx, place, resourcesv1alpha1.LabelManagedBy)
			mu.Lock()
			defer mu.Unlock()
			if err == nil { // otherwise they are read one by one
				for _, object := range objects {
					found[object.Key()] = object
				}
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	result := make(map[object.Key]*Object, len(refs))
	var rest errgroup.Group
	rest.SetLimit(inFlight)
	for _, ref := range refs {
		if object, there := found[ref.Key()]; there {
			mu.Lock()
			result[ref.Key()] = object
			mu.Unlock()
			continue
		}
		rest.Go(func() error {
			object := r.get(ctx, ref)
			mu.Lock()
			defer mu.Unlock()
			result[ref.Key()] = object
			return nil
		})
	}
	_ = rest.Wait() // no function returns an error
	return result
}

// placesOf returns the namespaces with enough of the objects to list them.
func placesOf(refs []object.Ref) []place {
	counts := map[place]int{}
	namespaces := map[schema.GroupVersionKind]int{}
	for _, ref := range refs {
		at := place{ref.GroupVersionKind, ref.Namespace}
		if counts[at] == 0 {
			namespaces[ref.GroupVersionKind]++
		}
		counts[at]++
	}
	total := map[schema.GroupVersionKind]int{}
	for at, count := range counts {
		total[at.GroupVersionKind] += count
	}
	chosen := map[place]bool{}
	for at, count := range counts {
		switch {
		case namespaces[at.GroupVersionKind] >= everywhereFrom && total[at.GroupVersionKind] >= listFrom:
			chosen[place{at.GroupVersionKind, ""}] = true
		case count >= listFrom:
			chosen[at] = true
		}
	}
	return slices.Collect(maps.Keys(chosen))
}

// collection returns the client for a kind, and whether it reads whole objects or only their metadata.
func (r *Reader) collection(gvk schema.GroupVersionKind) (target.Collection, bool, error) {
	whole := r.needsBody(gvk.GroupKind())
	open := r.target.Objects.Metadata
	if whole {
		open = r.target.Objects.Whole
	}
	collection, err := open(gvk)
	return collection, whole, err
}

// needsBody reports whether to read whole objects of a kind: kinds with a health, or whose state is shown. It returns
// false for
// Secrets.
func (r *Reader) needsBody(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
		schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, schema.GroupKind{Kind: "Namespace"}:
		return true
	}
	return r.examiner.NeedsBody(gk)
}

// list reads the objects of a kind that have a label, or all objects if the label is empty.
func (r *Reader) list(ctx context.Context, at place, label string) ([]*Object, error) {
	collection, whole, err := r.collection(at.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	reading := collection.In(at.namespace)
	options := metav1.ListOptions{LabelSelector: label, Limit: metadataPageSize}
	if whole {
		options.Limit = pageSize
	}
	var objects []*Object
	for {
		list, err := reading.List(ctx, options)
		if apierrors.IsResourceExpired(err) {
			objects, options.Limit, options.Continue = nil, 0, ""
			continue
		}
		if err != nil {
			return nil, err
		}
		before := len(objects)
		err = meta.EachListItem(list, func(obj runtime.Object) error { //nolint:contextcheck // examining sends no requests
			object, err := r.seen(at.GroupVersionKind, obj, whole)
			objects = append(objects, object)
			return err
		})
		if err != nil {
			return nil, err
		}
		r.addRead(len(objects) - before)
		accessor, err := meta.ListAccessor(list)
		if err != nil {
			return nil, err
		}
		if options.Continue = accessor.GetContinue(); options.Continue == "" {
			return objects, nil
		}
	}
}

func (r *Reader) get(ctx context.Context, ref object.Ref) *Object {
	unknown := &Object{Ref: ref}
	collection, whole, err := r.collection(ref.GroupVersionKind)
	if err == nil {
		err = ref.Validate()
	}
	var obj runtime.Object
	if err == nil {
		namespace := ref.Namespace
		if !collection.Namespaced {
			namespace = ""
		}
		obj, err = collection.In(namespace).Get(ctx, ref.Name)
		r.addRead(1)
	}
	switch {
	case errors.Is(err, target.ErrKindNotServed):
		unknown.Presence, unknown.Err = live.KindNotServed, err
		return unknown
	case apierrors.IsNotFound(err):
		unknown.Presence = live.Absent
		return unknown
	case apierrors.IsForbidden(err):
		r.addUnseen("%s%s", plural(ref.Kind), inNamespace(ref.Namespace))
		unknown.Err = errors.New("you may not read it")
		return unknown
	case err != nil:
		unknown.Err = err
		return unknown
	}
	seen, err := r.seen(ref.GroupVersionKind, obj, whole) //nolint:contextcheck // examining sends no requests
	if err != nil {
		unknown.Err = err
		return unknown
	}
	return seen
}

// seen returns the state of an object that was read.
func (r *Reader) seen(gvk schema.GroupVersionKind, obj runtime.Object, whole bool) (*Object, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("a %T has no metadata: %w", obj, err)
	}
	result := &Object{
		Ref:      object.Ref{GroupVersionKind: gvk, Namespace: accessor.GetNamespace(), Name: accessor.GetName()},
		Presence: live.Present, Meta: metadataOf(accessor),
	}
	if !whole {
		return result, nil
	}
	result.Body, result.Detail = obj, detailOf(obj)
	if r.examiner.NeedsBody(gvk.GroupKind()) {
		origin := accessor.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
		if owner, ok := resourcesv1alpha1.ParseOrigin(origin); ok && owner.ClusterID != "" {
			r.setOwn(origin, owner.Owner)
		}
		result.Verdict, result.Checked = r.examiner.Examine(gvk.GroupKind(), obj), true
	}
	if pod, ok := obj.(*corev1.Pod); ok && result.Verdict.Unhealthy == "" {
		result.Verdict = runningPod(pod)
	}
	return result, nil
}

// metadataOf returns the metadata that is used.
func metadataOf(accessor metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: accessor.GetNamespace(), Name: accessor.GetName(), UID: accessor.GetUID(), ResourceVersion: accessor.GetResourceVersion(),
		Generation: accessor.GetGeneration(), CreationTimestamp: accessor.GetCreationTimestamp(),
		DeletionTimestamp: accessor.GetDeletionTimestamp(),
		Labels:            accessor.GetLabels(), Annotations: accessor.GetAnnotations(), OwnerReferences: accessor.GetOwnerReferences(),
		Finalizers: accessor.GetFinalizers(), ManagedFields: accessor.GetManagedFields(),
	}
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

// plural returns the plural of a kind for messages.
func plural(kind string) string {
	switch {
	case len(kind) > 1 && kind[len(kind)-1] == 'y' && kind[len(kind)-2] != 'a' && kind[len(kind)-2] != 'e':
		return kind[:len(kind)-1] + "ies"
	case kind != "" && kind[len(kind)-1] == 's':
		return kind + "es"
	}
	return kind + "s"
}

// Package existingtypes knows which kinds and types of extension objects exist in a cluster. An extension must not be removed while
// there are objects of its types.
package existingtypes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/crdwatch"
)

// kinds are the kinds of extension objects, with their resources.
var kinds = map[string]string{
	corev1beta1.KindBackupBucket:            "backupbuckets",
	corev1beta1.KindBackupEntry:             "backupentries",
	corev1beta1.KindBastion:                 "bastions",
	corev1beta1.KindContainerRuntime:        "containerruntimes",
	corev1beta1.KindControlPlane:            "controlplanes",
	corev1beta1.KindDNSRecord:               "dnsrecords",
	corev1beta1.KindExtension:               "extensions",
	corev1beta1.KindInfrastructure:          "infrastructures",
	corev1beta1.KindNetwork:                 "networks",
	corev1beta1.KindOperatingSystemConfig:   "operatingsystemconfigs",
	corev1beta1.KindSelfHostedShootExposure: "selfhostedshootexposures",
	corev1beta1.KindWorker:                  "workers",
}

// indexType is the index of extension objects by their types.
const indexType = "type"

// Options are the options of a watcher.
type Options struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Served   crdwatch.Kinds
	// Kinds are the watched kinds; nil for all.
	Kinds []string
	// Counts reports whether objects of a class count. The class is empty if an object has none.
	Counts func(class string) bool
	// Changed is called when the first object of a type is created or the last one is deleted, and when the existing objects become
	// known. It must not block.
	Changed func()
	// Affected is what is left unchanged while a kind is not served, for the log.
	Affected string
}

// Watcher records which kinds and types of extension objects exist. After its watches have started, it sends no requests.
type Watcher struct {
	watches map[string]*crdwatch.Watch
	// changed is called when the first object of a type is created or the last one is deleted, and when the existing objects become known.
	changed func()

	mu sync.Mutex
	// exist contains the kinds and types that existed at the last event for one of their objects.
	exist map[string]bool
}

// extensionObject contains the relevant fields of an extension object.
type extensionObject struct {
	metav1.ObjectMeta
	typ string
}

// New returns a watcher that does not run yet.
func New(o Options) *Watcher {
	w := &Watcher{watches: map[string]*crdwatch.Watch{}, changed: o.Changed, exist: map[string]bool{}}
	for kind, resource := range kinds {
		if o.Kinds != nil && !slices.Contains(o.Kinds, kind) {
			continue
		}
		w.watches[kind] = crdwatch.New(crdwatch.Options{
			Dynamic: o.Dynamic, Metadata: o.Metadata, Kinds: o.Served, Namespaces: []string{metav1.NamespaceAll},
			Resource: extensionsv1alpha1.SchemeGroupVersion.WithResource(resource), Kind: kind, Reduce: reduce(o.Counts),
			Indexers: toolscache.Indexers{indexType: typeOf}, OnEvent: func(object any) { w.look(kind, object) }, OnKnown: o.Changed,
			Affected: o.Affected,
		})
	}
	return w
}

// reduce returns a function that returns the type of an extension object. Objects that do not count get no type, because another
// component manages them.
func reduce(counts func(class string) bool) func(*unstructured.Unstructured) any {
	return func(object *unstructured.Unstructured) any {
		kept := &extensionObject{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion(),
		}}
		class, _, _ := unstructured.NestedString(object.Object, "spec", "class")
		if counts(class) {
			kept.typ, _, _ = unstructured.NestedString(object.Object, "spec", "type")
		}
		return kept
	}
}

func typeOf(object any) ([]string, error) {
	kept, ok := object.(*extensionObject)
	if !ok {
		return nil, errors.New("not an extension object")
	}
	return []string{kept.typ}, nil
}

// look calls changed if the event was for the first or last object of a kind and type. Most events are not.
func (w *Watcher) look(kind string, object any) {
	kept, ok := object.(*extensionObject)
	if !ok || kept.typ == "" {
		return
	}
	exists := len(w.watches[kind].ByIndex(indexType, kept.typ)) > 0
	id := kind + "/" + kept.typ
	w.mu.Lock()
	before := w.exist[id]
	w.exist[id] = exists
	w.mu.Unlock()
	if before != exists {
		w.changed()
	}
}

// AddToManager makes the manager run the watches.
func (w *Watcher) AddToManager(mgr manager.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for _, watch := range w.watches {
			if err := watch.Start(ctx); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}))
}

// Existing returns the kinds and types among resources that have objects, joined, or an empty string. known is false until all
// kinds are listed. Kinds that are not watched have no objects.
func (w *Watcher) Existing(resources []corev1beta1.ControllerResource) (id string, known bool) {
	var found []string
	for _, resource := range resources {
		watch := w.watches[resource.Kind]
		if watch == nil {
			continue
		}
		if !watch.Known() {
			return "", false
		}
		if len(watch.ByIndex(indexType, resource.Type)) > 0 {
			found = append(found, resource.Kind+"/"+resource.Type)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", "), true
}

package installation

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

// extensionObjects records which kinds and types of extension objects exist in the seed. After its watches have started,
// it sends no requests.
type extensionObjects struct {
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

func newExtensionObjects(
	dynamicClient dynamic.Interface, metadataClient metadata.Interface, served crdwatch.Kinds, changed func(),
) *extensionObjects {
	e := &extensionObjects{watches: map[string]*crdwatch.Watch{}, changed: changed, exist: map[string]bool{}}
	for kind, resource := range kinds {
		e.watches[kind] = crdwatch.New(crdwatch.Options{
			Dynamic: dynamicClient, Metadata: metadataClient, Kinds: served, Namespaces: []string{metav1.NamespaceAll},
			Resource: extensionsv1alpha1.SchemeGroupVersion.WithResource(resource), Kind: kind, Reduce: reduceExtension,
			Indexers: toolscache.Indexers{indexType: typeOf}, OnEvent: func(object any) { e.look(kind, object) }, OnKnown: changed,
			Affected: "the condition Required of ControllerInstallations",
		})
	}
	return e
}

// reduceExtension returns the type of an extension object. Objects of the class garden get no type, because another component manages them.
func reduceExtension(object *unstructured.Unstructured) any {
	kept := &extensionObject{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion(),
	}}
	extensionClass, _, _ := unstructured.NestedString(object.Object, "spec", "class")
	if extensionClass != string(extensionsv1alpha1.ExtensionClassGarden) {
		kept.typ, _, _ = unstructured.NestedString(object.Object, "spec", "type")
	}
	return kept
}

func typeOf(object any) ([]string, error) {
	kept, ok := object.(*extensionObject)
	if !ok {
		return nil, errors.New("not an extension object")
	}
	return []string{kept.typ}, nil
}

// look calls changed if the event was for the first or last object of a kind and type. Most events are not.
func (e *extensionObjects) look(kind string, object any) {
	kept, ok := object.(*extensionObject)
	if !ok || kept.typ == "" {
		return
	}
	exists := len(e.watches[kind].ByIndex(indexType, kept.typ)) > 0
	id := kind + "/" + kept.typ
	e.mu.Lock()
	before := e.exist[id]
	e.exist[id] = exists
	e.mu.Unlock()
	if before != exists {
		e.changed()
	}
}

// addToManager makes the manager run the watches.
func (e *extensionObjects) addToManager(mgr manager.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for _, watch := range e.watches {
			if err := watch.Start(ctx); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}))
}

// existing returns the kinds and types of a registration that have objects, joined, or an empty string. known is false
// until all kinds are listed.
func (e *extensionObjects) existing(registration *corev1beta1.ControllerRegistration) (id string, known bool) {
	var found []string
	for _, resource := range registration.Spec.Resources {
		watch := e.watches[resource.Kind]
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

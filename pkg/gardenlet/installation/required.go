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

// kinds are those of extension objects, with their resources.
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

// extensionObjects knows which kinds and types of extension objects exist in the seed. It sends no requests once its watches have begun.
type extensionObjects struct {
	watches map[string]*crdwatch.Watch
	// changed is called when a type comes or goes, or when it has become known which objects there are.
	changed func()

	mu sync.Mutex
	// exist has the kinds and types that existed when an object of them came, changed or went last.
	exist map[string]bool
}

// extensionObject is what is kept of one.
type extensionObject struct {
	metav1.ObjectMeta
	typ string
}

func newExtensionObjects(dynamicClient dynamic.Interface, metadataClient metadata.Interface, served crdwatch.Kinds, changed func()) *extensionObjects {
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

// reduceExtension keeps the type of an extension object. Those of the garden, which is not this gardenlet's, have none.
func reduceExtension(object *unstructured.Unstructured) any {
	kept := &extensionObject{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion()}}
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

// look reports that the kind and type of an object exist now, or do not any more. Most events change neither.
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

// addToManager has the manager run the watches.
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

// existing returns a kind and type of a registration that has objects; empty if no kind has any. It is not known until all kinds were
// listed.
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

package seedfacts

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/crdwatch"
)

// Watch adds a watch of Gardens to the manager of the seed. When a Garden appears, disappears, or says something else, all that depend on the
// facts are notified at once. Without the kind Garden, only its definition is watched.
func (r *Reader) Watch(mgr manager.Manager, dynamic dynamic.Interface, metadata metadata.Interface, kinds crdwatch.Kinds) error {
	w := &gardens{reader: r}
	w.watch = crdwatch.New(crdwatch.Options{
		Dynamic: dynamic, Metadata: metadata, Kinds: kinds, Namespaces: []string{metav1.NamespaceAll},
		Resource: operatorv1alpha1.SchemeGroupVersion.WithResource("gardens"), Kind: "Garden",
		Reduce: reduce, OnEvent: func(any) { w.look() }, OnKnown: w.look, Affected: "components that the operator owns",
	})
	return mgr.Add(manager.RunnableFunc(w.watch.Start))
}

// gardens compares what the watched Gardens say with what they said before.
type gardens struct {
	reader *Reader
	watch  *crdwatch.Watch

	mu   sync.Mutex
	said Facts
}

// garden is a watched Garden: its metadata, and what it says.
type garden struct {
	metav1.ObjectMeta
	facts Facts
}

func reduce(object *unstructured.Unstructured) any {
	reduced := &garden{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion()}}
	reduced.facts.add(object)
	return reduced
}

// look makes the facts expire if the Gardens say something else. The status of a Garden changes often, but not what it says here.
func (w *gardens) look() {
	if !w.watch.Known() {
		return
	}
	says := Facts{}
	for _, object := range w.watch.List() {
		if one, is := object.(*garden); is {
			says.IsGarden = true
			says.HasIstio = says.HasIstio || one.facts.HasIstio
			if one.facts.OperatorVersion != "" {
				says.OperatorVersion = one.facts.OperatorVersion
			}
		}
	}
	w.mu.Lock()
	changed := says != w.said
	w.said = says
	w.mu.Unlock()
	if changed {
		w.reader.expire()
	}
}

package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// state is what is declared: the manifests of each ManagedResource.
type state map[string][]string

// scenario is a change of what is declared.
type scenario struct {
	name string
	// given is what is declared, and so, before the change, and then what is declared by it. ManagedResources that are in both have
	// their Secrets written, in the order of their names; those that are in one alone are created or deleted.
	given, then state
	// existing are manifests of objects that somebody else has made before.
	existing []string
	// replaced are the names of objects that have to be deleted and created anew.
	replaced []string
	// pruneDelay is how long what leaves a ManagedResource waits for another one.
	pruneDelay time.Duration
	// stopped has the resource-manager start after the change, so that its start is part of the scenario.
	stopped bool
}

// world is a namespace for one run of a scenario, as source and as target.
type world struct {
	*testing.T
	scenario
	controlPlane *controlplane.ControlPlane
	client       client.Client
	namespace    string
	// untouched are the objects of others, and kept the UIDs of objects that are wanted before the change and after it.
	untouched []*unstructured.Unstructured
	kept      map[key]string

	mu         sync.Mutex
	violations []string
}

var install sync.Once

func newWorld(t *testing.T, s scenario) *world {
	t.Helper()
	cp := shared.Get(t)
	install.Do(func() {
		_, err := envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{Paths: []string{"../../config/crd"}, ErrorIfPathMissing: true})
		kit.Must(t, err)
	})
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, resourcesv1alpha1.AddToScheme(scheme))
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	return &world{T: t, scenario: s, controlPlane: cp, client: c, namespace: kit.NewNamespace(t, c, "faults", nil)}
}

// class is that of the ManagedResources, and the identity and managed-by label of the resource-manager: other runs have nothing to do
// with it.
func (w *world) class() string { return w.namespace }

// newLine returns the clients of the resource-managers of the run.
func (w *world) newLine(p *plan) *line {
	return &line{rename: strings.NewReplacer(w.namespace, placeholder), plan: p, witness: w.attest}
}

// placeholder stands for the namespace of a run in manifests, and in the names of sites.
const placeholder = "NAMESPACE"

// objects returns the objects that are declared, by ManagedResource.
func (w *world) objects(s state) map[string][]*unstructured.Unstructured {
	w.Helper()
	objects := map[string][]*unstructured.Unstructured{}
	for name, manifests := range s {
		for _, manifest := range manifests {
			obj := &unstructured.Unstructured{}
			kit.Must(w, yaml.Unmarshal([]byte(w.fill(manifest)), &obj.Object))
			objects[name] = append(objects[name], obj)
		}
	}
	return objects
}

func (w *world) fill(text string) string { return strings.ReplaceAll(text, placeholder, w.namespace) }

// addOthers creates objects that the resource-manager has nothing to do with, one of which looks as if it had.
func (w *world) addOthers() {
	w.Helper()
	for _, manifest := range []string{
		configMap("of-a-person", "1"),
		strings.Replace(configMap("of-another-manager", "1"), "metadata:\n", "metadata:\n"+
			"  labels: {"+resourcesv1alpha1.LabelManagedBy+": NAMESPACE}\n"+
			"  annotations: {"+resourcesv1alpha1.AnnotationOrigin+": 'elsewhere:NAMESPACE/a'}\n", 1),
	} {
		w.untouched = append(w.untouched, w.create(manifest))
	}
}

// declare makes one state of another.
func (w *world) declare(before, after state) {
	w.Helper()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		data := map[string][]byte{"objects.yaml": []byte(w.fill(strings.Join(after[name], "---\n")))}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: data}
		if _, exists := before[name]; exists {
			if !slices.Equal(before[name], after[name]) {
				kit.Must(w, w.client.Update(w.Context(), secret))
			}
			continue
		}
		kit.Must(w, w.client.Create(w.Context(), secret))
		kit.Must(w, w.client.Create(w.Context(), &resourcesv1alpha1.ManagedResource{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
			Spec: resourcesv1alpha1.ManagedResourceSpec{
				Class: ptr.To(w.class()), SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: name}},
			},
		}))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			kit.Must(w, w.client.Delete(w.Context(), w.managedResource(name)))
		}
	}
}

// create creates an object as the user of a client that does not apply.
func (w *world) create(manifest string) *unstructured.Unstructured {
	w.Helper()
	obj := &unstructured.Unstructured{}
	kit.Must(w, yaml.Unmarshal([]byte(w.fill(manifest)), &obj.Object))
	kit.Must(w, w.client.Create(w.Context(), obj, client.FieldOwner("kubectl-create")))
	return obj
}

// remember notes the UIDs of the objects that are there and have to stay.
func (w *world) remember() {
	w.Helper()
	w.kept = map[key]string{}
	for _, manifest := range w.existing {
		obj := w.create(manifest)
		w.kept[keyOf(obj)] = string(obj.GetUID())
	}
	stays := w.wanted(w.then)
	for k, uid := range w.uids() {
		if _, is := stays[k]; is && !slices.Contains(w.replaced, k.name) {
			w.kept[k] = uid
		}
	}
}

// uids returns the UIDs of our objects.
func (w *world) uids() map[key]string {
	w.Helper()
	ours, err := w.ours()
	kit.Must(w, err)
	uids := map[key]string{}
	for k, obj := range ours {
		uids[k] = string(obj.GetUID())
	}
	return uids
}

func (w *world) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

func (w *world) managedResource(name string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// clear deletes the objects of the run that an API server can have but few of: addresses of Services are scarce, and it gets slower
// with each definition.
func (w *world) clear() {
	for kind, options := range map[schema.GroupVersionKind]client.DeleteAllOfOption{
		{Version: "v1", Kind: "Service"}: client.InNamespace(w.namespace),
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: client.MatchingLabels{
			resourcesv1alpha1.LabelManagedBy: w.class(),
		},
	} {
		objects := &metav1.PartialObjectMetadata{}
		objects.SetGroupVersionKind(kind)
		if err := w.client.DeleteAllOf(context.WithoutCancel(w.Context()), objects, options); err != nil {
			w.Logf("delete what is left: %v", err)
		}
	}
}

// violate notes that something happened that must not happen at any time.
func (w *world) violate(format string, arguments ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, arguments...))
}

func (w *world) violated() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}

package state

import (
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

func reference(apiVersion, kind, name string) corev1beta1.NamedResourceReference {
	return corev1beta1.NamedResourceReference{Name: "of-" + name, ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}}
}

// extensionObject returns an object with references and, if it is not empty, a state.
func extensionObject(name, state string, references ...corev1beta1.NamedResourceReference) *extensionsv1alpha1.OperatingSystemConfig {
	object := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.Spec.Purpose = extensionsv1alpha1.OperatingSystemConfigPurposeProvision
	object.Status.Resources = references
	if state != "" {
		object.Status.State = &runtime.RawExtension{Raw: []byte(state)}
	}
	return object
}

// TestStates checks that objects without a state and references, and objects that are being deleted, have no entry.
func TestStates(t *testing.T) {
	deleted := extensionObject("deleted", "{}")
	deleted.DeletionTimestamp = ptr.To(metav1.Now())
	states := States("OperatingSystemConfig", []extensionsv1alpha1.Object{
		extensionObject("a", `{"size":1}`), extensionObject("b", "", reference("v1", "Secret", "key")), extensionObject("c", ""), deleted,
	})
	if len(states) != 2 || *states[0].Name != "a" || string(states[0].State.Raw) != `{"size":1}` || *states[0].Purpose != "provision" || *states[1].Name != "b" || states[1].State != nil {
		t.Fatalf("%+v", states)
	}
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	worker.Status.State = &runtime.RawExtension{Raw: []byte("1")}
	if states := States("Worker", []extensionsv1alpha1.Object{worker}); len(states) != 1 || states[0].Purpose != nil || states[0].Kind != "Worker" {
		t.Errorf("%+v", states)
	}
}

// TestReferences checks that referenced Secrets and ConfigMaps are returned once.
func TestReferences(t *testing.T) {
	var names []string
	for _, each := range References([]corev1beta1.ExtensionResourceState{
		{Resources: []corev1beta1.NamedResourceReference{reference("v1", "Secret", "b"), reference("v1", "Pod", "x"), reference("apps/v1", "Secret", "y")}},
		{Resources: []corev1beta1.NamedResourceReference{reference("v1", "Secret", "a"), reference("v1", "ConfigMap", "c"), reference("v1", "Secret", "b")}},
	}) {
		names = append(names, each.Kind+"/"+each.Name)
	}
	if !slices.Equal(names, []string{"ConfigMap/c", "Secret/a", "Secret/b"}) {
		t.Error(names)
	}
}

// TestResourceOf checks that an object is stored without the fields that an API server adds.
func TestResourceOf(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot--dev--one", Name: "key", UID: "1", ResourceVersion: "2", Labels: map[string]string{"a": "b"}, Finalizers: []string{"example.org/x"},
		},
		Data: map[string][]byte{"key": []byte("value")},
	}
	resource, err := resourceOf(reference("v1", "Secret", "key").ResourceRef, secret)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"key","namespace":"shoot--dev--one","labels":{"a":"b"}},"data":{"key":"dmFsdWU="}}`
	if got := strings.Replace(string(resource.Data.Raw), `"creationTimestamp":null,`, "", 1); !sameJSON([]byte(got), []byte(want)) {
		t.Errorf("%s, want %s", got, want)
	}
	if secret.UID == "" || resource.Name != "key" || resource.Kind != "Secret" {
		t.Errorf("%+v of %+v", resource.CrossVersionObjectReference, secret.ObjectMeta)
	}
}

// TestEqualStates checks that states are compared by content, regardless of their encoding.
func TestEqualStates(t *testing.T) {
	of := func(state string) corev1beta1.ShootStateSpec {
		return corev1beta1.ShootStateSpec{Extensions: States("OperatingSystemConfig", []extensionsv1alpha1.Object{extensionObject("a", state)})}
	}
	if !Equal(of(`{"a":1,"b":2}`), of(`{ "b": 2, "a": 1 }`)) || Equal(of(`{"a":1}`), of(`{"a":2}`)) || Equal(of(`{"a":1}`), corev1beta1.ShootStateSpec{}) {
		t.Error("states with the same content differ, or different ones are equal")
	}
}

// TestManagedSeeds checks which Seeds are Shoots, and that the states of extensions are not stored there.
func TestManagedSeeds(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"without labels":    {nil, false},
		"of its own":        {map[string]string{"name.seed.gardener.cloud/blue": "true", "region": "here"}, false},
		"in another Seed":   {map[string]string{"name.seed.gardener.cloud/blue": "true", "name.seed.gardener.cloud/host": "true"}, true},
		"with other labels": {map[string]string{"example.org/host": "true"}, false},
	} {
		seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "blue", Labels: test.labels}}
		if got := isManaged(seed); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one"}}
		shoot.Status.SeedName, shoot.Status.TechnicalID = ptr.To("blue"), "shoot--dev--one"
		scheme := runtime.NewScheme()
		if err := corev1beta1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		// Without a cache of the objects in the seed, a reconciliation that reads them panics.
		e := &extensions{
			Options: Options{SeedName: "blue"}, shoots: fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed, shoot).Build(),
			owners: map[string]types.NamespacedName{},
		}
		stores := func() (stores bool) {
			defer func() { stores = recover() != nil }()
			_, err := e.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "garden-dev", Name: "one"}})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return false
		}()
		if stores == test.want {
			t.Errorf("%s: the states are stored: %t", name, stores)
		}
	}
}

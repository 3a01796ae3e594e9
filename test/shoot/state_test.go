package shoot

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestState deletes data that cannot be generated again. They are restored from the ShootState, or the Shoot reports that they are lost.
func TestState(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	_, _, stop := w.gardenlet()
	w.declare()
	w.awaitBundle("kube-apiserver")
	first := w.persisted()
	for _, name := range []string{"ca", "ca-client", "ca-etcd", "ca-front-proxy", "service-account-key", "kube-apiserver-etcd-encryption-key", "kube-apiserver-static-token"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(first)), func(key string) bool { return strings.HasPrefix(key, name) }) {
			t.Errorf("no Secret %s is persisted", name)
		}
	}
	w.checkState(first)

	for name, data := range first {
		w.deleteSecret(name)
		w.awaitSecret(name, data)
	}
	w.checkState(first)
	w.checkNotShown(first)
	w.checkStatesOfExtensions()
	w.checkState(first)
	w.awaitLedger()
	stop()
	toGarden, _, stopAgain := w.gardenlet()
	compared := kit.Request{Method: http.MethodGet, Path: "/apis/core.gardener.cloud/v1beta1/namespaces/" + namespace + "/shootstates/" + shootName}
	kit.EventuallyTrue(t, "gardenlet compares the ShootState after its start", func() bool { return slices.Contains(toGarden.Single(), compared) })
	kit.EventuallyTrue(t, "gardenlet continues", func() bool { return len(writes(toGarden)) > 0 })
	for _, sent := range writes(toGarden) {
		if strings.Contains(sent, "/shootstates") {
			t.Errorf("a restart wrote %s", sent)
		}
	}
	stopAgain()

	// If both the Secret and the ShootState are lost, the Secret is not generated again.
	state := w.state()
	w.deleteState()
	w.deleteSecret("ca-etcd")
	_, _, stop = w.gardenlet()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateError, "ca-etcd is lost")
	if names := slices.Collect(maps.Keys(w.persisted())); len(names) != len(first)-1 {
		t.Errorf("the Secrets are %v", names)
	}
	kit.Must(t, w.garden.Create(t.Context(), &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shootName}, Spec: state.Spec}))
	w.awaitSecret("ca-etcd", first["ca-etcd"])
	stop()
	w.checkState(first)
}

// checkStatesOfExtensions checks the ShootState while an extension reports a state that references a Secret, changes it,
// and deletes its object.
func (w *world) checkStatesOfExtensions() {
	w.Helper()
	w.create(w.seed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: "ssh-key"}, Data: map[string][]byte{"key": []byte("value")}})
	object := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: "filter"}}
	object.Spec.Type = "filter"
	w.create(w.seed, object)
	report := func(state string) {
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		object.Status.State = &runtime.RawExtension{Raw: []byte(state)}
		object.Status.Resources = []corev1beta1.NamedResourceReference{
			{Name: "ssh", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "ssh-key"}},
		}
		kit.WriteStatus(w, w.seed, object)
	}
	stored := func(what string, holds func(corev1beta1.ShootStateSpec) bool) {
		w.Helper()
		kit.EventuallyTrue(w, what, func() bool { return holds(w.state().Spec) })
	}
	for _, state := range []string{`{"rules":1}`, `{"rules":2}`} {
		report(state)
		stored("the ShootState has the state "+state, func(spec corev1beta1.ShootStateSpec) bool {
			return len(spec.Extensions) == 1 && spec.Extensions[0].Kind == "Extension" && string(spec.Extensions[0].State.Raw) == state &&
				len(spec.Resources) == 1 && strings.Contains(string(spec.Resources[0].Data.Raw), base64.StdEncoding.EncodeToString([]byte("value")))
		})
	}
	kit.Must(w, w.seed.Delete(w.Context(), object))
	stored("the ShootState has no state", func(spec corev1beta1.ShootStateSpec) bool { return len(spec.Extensions)+len(spec.Resources) == 0 })
}

// awaitBundle waits until a ManagedResource of the control plane exists.
func (w *world) awaitBundle(name string) {
	w.Helper()
	kit.EventuallyWithin(w, 6*kit.WaitTimeout, "ManagedResource "+name+" exists", func() string {
		return kit.TextOf(w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: name}, &resourcesv1alpha1.ManagedResource{}))
	})
}

// persisted returns the data of the Secrets that the ShootState must contain, except the ledger.
func (w *world) persisted() map[string]map[string][]byte {
	w.Helper()
	var list corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &list, client.InNamespace(technical), client.MatchingLabels{"persist": "true"}))
	found := map[string]map[string][]byte{}
	for _, secret := range list.Items {
		found[secret.Name] = secret.Data
	}
	delete(found, ledger)
	return found
}

func (w *world) state() *corev1beta1.ShootState {
	w.Helper()
	state := &corev1beta1.ShootState{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: shootName}, state))
	return state
}

// ledger is the name of the Secret with the ledger of the Shoot. It is persisted too, but a lost one is written again, with
// the times of its new entries.
const ledger = "shoot-ledger"

// awaitLedger waits until the ShootState contains the ledger, which is written when the API server serves.
func (w *world) awaitLedger() {
	w.Helper()
	kit.EventuallyTrue(w, "the ShootState contains the ledger", func() bool {
		saved, err := secrets.Saved(w.state().Spec.Gardener)
		kit.Must(w, err)
		return slices.ContainsFunc(saved, func(secret secrets.Secret) bool { return secret.Name == ledger })
	})
}

// checkState compares the ShootState with the Secrets.
func (w *world) checkState(want map[string]map[string][]byte) {
	w.Helper()
	saved, err := secrets.Saved(w.state().Spec.Gardener)
	kit.Must(w, err)
	got := map[string]map[string][]byte{}
	for _, secret := range saved {
		got[secret.Name] = secret.Data
	}
	delete(got, ledger)
	if !equality.Semantic.DeepEqual(got, want) {
		w.Errorf("the ShootState has the Secrets %v, want the existing ones %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func (w *world) deleteSecret(name string) {
	w.Helper()
	kit.Must(w, w.seed.Delete(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: name}}))
}

// awaitSecret waits until a Secret exists with the given data.
func (w *world) awaitSecret(name string, data map[string][]byte) {
	w.Helper()
	secret := &corev1.Secret{}
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "Secret "+name+" is restored", func() string {
		err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v; %+v", err, w.get().Status.LastOperation)
		}
		return kit.TextOf(err)
	})
	if !equality.Semantic.DeepEqual(secret.Data, data) {
		w.Errorf("Secret %s was generated again", name)
	}
}

func (w *world) deleteState() {
	w.Helper()
	state := w.state()
	kit.Change(w, w.garden, state, func() {
		metav1.SetMetaDataAnnotation(&state.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	})
	kit.Must(w, w.garden.Delete(w.Context(), state))
}

// checkNotShown checks that neither the Shoot nor Events contain data of the Secrets.
func (w *world) checkNotShown(secrets map[string]map[string][]byte) {
	w.Helper()
	var events corev1.EventList
	kit.Must(w, w.garden.List(w.Context(), &events, client.InNamespace(namespace)))
	text, err := json.Marshal([]any{w.get(), events.Items})
	kit.Must(w, err)
	for name, data := range secrets {
		for key, value := range data {
			if len(value) > 16 && (strings.Contains(string(text), string(value)) || strings.Contains(string(text), base64.StdEncoding.EncodeToString(value))) {
				w.Errorf("the Shoot or its Events contain %s of Secret %s", key, name)
			}
		}
	}
}

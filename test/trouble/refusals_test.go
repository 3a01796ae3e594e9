package trouble

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

func (w *world) secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// TestWebhookDenies makes a webhook deny updates, and then deletions. A denied object must remain unchanged and in
// the inventory, and other objects must be processed. The declared state must be established soon after the
// webhook stops denying.
func TestWebhookDenies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var denied atomic.Value
	denied.Store(admissionv1.Operation(""))
	w.webhook("denied", func(request *admissionv1.AdmissionRequest) bool { return request.Operation != denied.Load() })
	w.startManager(everyFewSeconds) // a denied request is retried with every sync
	w.declare("set", configMap("denied", "1"), configMap("beside", "1"), configMap("denied-leaves", "1"))
	w.eventuallyHolds("at first")
	before := w.uid(configMap("denied", ""))

	denied.Store(admissionv1.Update)
	w.eventuallyDenied(func() error {
		return w.client.Patch(t.Context(), w.parse(configMap("denied", "")), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"x":"y"}}`)), client.DryRunAll)
	})
	w.declare("set", configMap("denied", "2"), configMap("beside", "2"), configMap("denied-leaves", "1"))
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonApplyFailed, "denied", "Could not apply (1)")
	w.wantValue("beside", "2")
	w.wantValue("denied", "1")
	denied.Store(admissionv1.Delete)
	w.eventuallyHolds("updates are no longer denied")
	if after := w.uid(configMap("denied", "")); after != before {
		t.Errorf("the UID is %s, was %s", after, before)
	}

	w.declare("set", configMap("denied", "3"), configMap("beside", "3"))
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonDeletionFailed, "denied-leaves")
	w.wantValue("denied", "3")
	if got := len(w.read("set").Status.Resources); got != 3 {
		t.Errorf("the inventory has %d objects, want 3", got)
	}
	w.undeclare("set")
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonDeletionFailed, "denied")
	denied.Store(admissionv1.Operation(""))
	w.eventuallyHolds("deletions are no longer denied")
}

// webhook registers a webhook for ConfigMaps of the world whose names begin with a prefix.
func (w *world) webhook(prefix string, allows func(*admissionv1.AdmissionRequest) bool) {
	w.Helper()
	served := kit.ServeWebhooks(w, map[string]http.Handler{"/": http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: allows(review.Request), Result: &metav1.Status{Message: "denied by a test"},
		}
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(review) // the API server notices an unreadable response by its status
	})})
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "denies.example.org", ClientConfig: served.ClientConfig("/"), AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
			MatchConditions:   []admissionregistrationv1.MatchCondition{{Name: "name", Expression: "request.name.startsWith('" + prefix + "')"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	kit.Must(w, w.client.Create(w.Context(), configuration))
	w.Cleanup(func() { _ = w.client.Delete(w.background(), configuration) })
}

// eventuallyDenied waits until the API server calls the webhook.
func (w *world) eventuallyDenied(try func() error) {
	w.Helper()
	kit.EventuallyTrue(w, "the webhook denies", func() bool { return try() != nil })
}

// wantValue waits until a ConfigMap has a value.
func (w *world) wantValue(name, value string) {
	w.Helper()
	kit.Eventually(w, name+" has the value "+value, func() string {
		obj := w.live(configMap(name, ""))
		if obj == nil {
			return "it does not exist"
		}
		if got, _, err := unstructured.NestedString(obj.Object, "data", "key"); err != nil || got != value {
			return "the value is " + got
		}
		return ""
	})
}

// TestForbiddenKind removes all rights to Services from a resource-manager that has applied one, and restores
// them. In between a further Service is declared, one is removed, and other kinds must still be processed.
func TestForbiddenKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.account("manager")
	w.grant("most", []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
		{APIGroups: []string{"autoscaling"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	})
	rights := func() client.Object {
		return w.grant("services", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"*"}}})
	}
	taken := rights()
	p := newProxy(t, config)
	w.startManager(throughProxy(nil, p))
	w.declare("set", configMap("one", "1"), service("same", 1), service("changes", 1), service("leaves", 1))
	w.eventuallyHolds("at first")
	before := w.uid(service("same", 1))

	kit.Must(t, w.client.Delete(t.Context(), taken))
	w.eventuallyForbidden(config)
	p.cutWatches()
	w.declare("set", configMap("one", "2"), service("same", 1), service("changes", 2), service("comes", 1))
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonApplyFailed, "forbidden")
	w.wantValue("one", "2")
	recorded := map[string]bool{}
	for _, entry := range w.read("set").Status.Resources {
		recorded[entry.Name] = true
	}
	for _, name := range []string{"one", "same", "changes", "leaves", "comes"} {
		if !recorded[name] {
			t.Errorf("%s is not in the inventory", name)
		}
	}
	rights()
	w.eventuallyHolds("with the rights again")
	if after := w.uid(service("same", 1)); after != before {
		t.Errorf("the UID is %s, was %s", after, before)
	}
}

// eventuallyForbidden waits until listing Services is forbidden.
func (w *world) eventuallyForbidden(config *rest.Config) {
	w.Helper()
	clients, err := kubernetes.NewForConfig(config)
	kit.Must(w, err)
	kit.EventuallyTrue(w, "Services are forbidden", func() bool {
		_, err := clients.CoreV1().Services(w.namespace).List(w.Context(), metav1.ListOptions{})
		return err != nil
	})
}

// TestNamespaceTerminates deletes the namespace of some objects. They can only be restored after the namespace is
// deleted and created again. No other object may be affected, and the inventory must be complete.
func TestNamespaceTerminates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startManager(everyFewSeconds) // there is no event for a namespace
	other := kit.NewNamespace(t, w.client, "trouble-other", nil)
	inOther := func(value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there, namespace: " + other + "}\ndata: {key: '" + value + "'}\n"
	}
	w.declare("set", configMap("here", "1"), inOther("1"))
	w.eventuallyHolds("at first")

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}
	kit.Must(t, w.client.Delete(t.Context(), namespace))
	w.delete(inOther("1")) // as kube-controller-manager would
	w.declare("set", configMap("here", "2"), inOther("2"))
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonApplyFailed, "being terminated")
	w.wantValue("here", "2")
	w.finalize(namespace)
	w.eventuallyApplied("set", isFalse, resourcesv1alpha1.ReasonApplyFailed, "not found")
	kit.Must(t, w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}))
	w.eventuallyHolds("with the namespace again")
	w.undeclare("set")
	w.eventuallyHolds("in the end")
}

// finalize completes the deletion of a namespace, as kube-controller-manager would.
func (w *world) finalize(namespace *corev1.Namespace) {
	w.Helper()
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(namespace), namespace))
	namespace.Spec.Finalizers = nil
	kit.Must(w, w.client.SubResource("finalize").Update(w.Context(), namespace))
}

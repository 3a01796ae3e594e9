package apiserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// shootRules are the rules of webhooks and policies that check new Shoots.
var shootRules = admissionregistrationv1.RuleWithOperations{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{gardencorev1beta1.GroupName}, APIVersions: []string{"v1beta1"}, Resources: []string{"shoots"}},
}

// in returns a selector for a namespace.
func in(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

// TestServiceAccountCaller checks that delegated authentication and authorization accept the token of a ServiceAccount.
func TestServiceAccountCaller(t *testing.T) {
	t.Parallel()
	const namespace = "garden-accounts"
	c := newClient(t)
	newShoot(t, c, namespace, "seen")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}}
	kit.Must(t, c.Create(t.Context(), account))
	kit.Must(t, c.Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{gardencorev1beta1.GroupName}, Resources: []string{"shoots"}, Verbs: []string{"get", "list"}}},
	}))
	kit.Must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}},
	}))
	token := &authenticationv1.TokenRequest{}
	kit.Must(t, c.SubResource("token").Create(t.Context(), account, token))

	for name, config := range map[string]*rest.Config{"behind the aggregator": shared.Get(t).Config(), "itself": shared.Get(t).Direct()} {
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = token.Status.Token
		reader, err := client.New(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
		kit.Must(t, err)
		shoots := &gardencorev1beta1.ShootList{}
		kit.EventuallyTrue(t, "the ServiceAccount may list Shoots of the API server "+name, func() bool {
			return reader.List(t.Context(), shoots, client.InNamespace(namespace)) == nil
		})
		if len(shoots.Items) != 1 {
			t.Errorf("%s: a ServiceAccount lists %d Shoots, want 1", name, len(shoots.Items))
		}
		if err := reader.Delete(t.Context(), &shoots.Items[0]); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "confirmation") {
			t.Errorf("%s: a ServiceAccount deletes a Shoot: %v, want Forbidden", name, err)
		}
		if err := reader.List(t.Context(), shoots); !apierrors.IsForbidden(err) {
			t.Errorf("%s: a ServiceAccount lists the Shoots of all namespaces: %v, want Forbidden", name, err)
		}
		config.BearerToken = "invalid"
		stranger, err := client.New(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
		kit.Must(t, err)
		if err := stranger.List(t.Context(), shoots, client.InNamespace(namespace)); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: an invalid token: %v, want Unauthorized", name, err)
		}
	}
}

// TestPolicies checks that a ValidatingAdmissionPolicy rejects Shoots based on their contents.
func TestPolicies(t *testing.T) {
	t.Parallel()
	const namespace = "garden-policies"
	c := newClient(t)
	ensureNamespace(t, c, namespace)
	fail := admissionregistrationv1.Fail
	kit.Must(t, c.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "few-nodes"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: shootRules}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "object.spec.provider.workers.all(w, w.maximum <= 100)", Message: "a pool has more than 100 nodes",
			}},
		},
	}))
	kit.Must(t, c.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "few-nodes"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "few-nodes", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: in(namespace)},
		},
	}))
	shoot := exampleOf(t, "Shoot", namespace, "large", &gardencorev1beta1.Shoot{})
	shoot.Spec.Provider.Workers[0].Maximum = 101
	kit.EventuallyTrue(t, "the policy refuses a Shoot", func() bool {
		err := c.Create(t.Context(), shoot.DeepCopy(), client.DryRunAll)
		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "a pool has more than 100 nodes")
	})
	shoot.Spec.Provider.Workers[0].Maximum = 100
	kit.Must(t, c.Create(t.Context(), shoot, client.DryRunAll))
}

// TestMutatingWebhook checks that a webhook can change new Shoots.
func TestMutatingWebhook(t *testing.T) {
	t.Parallel()
	const namespace = "garden-webhooks"
	c := newClient(t)
	ensureNamespace(t, c, namespace)
	kit.Must(t, c.Create(t.Context(), labelling(t, namespace, func() {})))
	kit.EventuallyTrue(t, "the webhook labels a Shoot", func() bool {
		shoot := exampleOf(t, "Shoot", namespace, "labelled", &gardencorev1beta1.Shoot{})
		kit.Must(t, c.Create(t.Context(), shoot, client.DryRunAll))
		return shoot.Labels["webhook"] == "called"
	})
}

// labelling returns the configuration of a webhook that labels the new Shoots of a namespace. The webhook first calls a
// function.
func labelling(t *testing.T, namespace string, called func()) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	served := kit.ServeWebhooks(t, map[string]http.Handler{"/label": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called()
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: &kind, Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"webhook":"called"}}]`),
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the API server reports a missing response
	})})
	none := admissionregistrationv1.SideEffectClassNone
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "label.example.org", ClientConfig: served.ClientConfig("/label"), SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: in(namespace), Rules: []admissionregistrationv1.RuleWithOperations{shootRules},
		}},
	}
}

// TestWatchList checks that a watch can start with the existing objects.
func TestWatchList(t *testing.T) {
	t.Parallel()
	const namespace = "garden-watchlist"
	c := newClient(t)
	for _, name := range []string{"first", "second"} {
		newShoot(t, c, namespace, name)
	}
	yes := true
	stream, err := c.Watch(t.Context(), &gardencorev1beta1.ShootList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	}})
	kit.Must(t, err)
	defer stream.Stop()
	var found []string
	for event := range stream.ResultChan() {
		shoot, ok := event.Object.(*gardencorev1beta1.Shoot)
		if !ok {
			t.Fatalf("event %s with %v", event.Type, event.Object)
		}
		if event.Type == watch.Bookmark {
			if shoot.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("annotations of the bookmark: %v", shoot.Annotations)
			}
			break
		}
		found = append(found, string(event.Type)+" "+shoot.Name)
	}
	if want := "ADDED first,ADDED second"; strings.Join(found, ",") != want {
		t.Errorf("initial events %v, want %s", found, want)
	}
}

// TestPriorityAndFairness checks that the response names the priority level and the flow of the request in its headers.
func TestPriorityAndFairness(t *testing.T) {
	t.Parallel()
	config := shared.Get(t).Direct()
	c, err := rest.HTTPClientFor(config)
	kit.Must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/apis/core.gardener.cloud/v1beta1/seeds", http.NoBody)
	kit.Must(t, err)
	response, err := c.Do(request)
	kit.Must(t, err)
	kit.Must(t, response.Body.Close())
	for _, header := range []string{"X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"} {
		if response.Header.Get(header) == "" {
			t.Errorf("%s is missing: %v", header, response.Header)
		}
	}
}

package tunnel

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/pki"
)

// TestTunnel checks what users do with a cluster that its API server has no route to: requests to kubelets, and webhooks. Nothing works without an
// agent or with that of another cluster; everything does while one server is killed, and after the tunnel was cut.
func TestTunnel(t *testing.T) {
	w := newWorld(t)
	w.nodes()
	w.webhook()

	w.agent(pki.New(t, "ca-vpn")) // of another cluster
	kit.Eventually(t, "the agent of another cluster is refused", func() string {
		if why := w.servers[0].ready(); !strings.Contains(why, "is refused") {
			return "the server says: " + why
		}
		return ""
	})
	if why := w.logs(); why == "" {
		t.Error("a kubelet is reached without a tunnel")
	}

	w.agent(w.authority)
	for _, s := range w.servers {
		kit.Eventually(t, s.name+" has the agent", s.ready)
	}
	kit.Eventually(t, "the kubelet answers", w.logs)
	kit.Eventually(t, "the webhook answers", w.changed)
	answer, err := w.client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/gone/proxy/healthz").DoRaw(t.Context())
	if err == nil || !strings.Contains(string(answer), "no route to host") {
		t.Errorf("the error of the cluster's network is not reported: %s, %v", answer, err)
	}

	kit.Must(t, w.servers[0].process.Stop(0))
	for range 10 { // the other server is ready, so that nothing fails
		if why := w.logs() + w.changed(); why != "" {
			t.Fatalf("while a server is gone: %s", why)
		}
	}
	w.start(w.servers[0])
	kit.Eventually(t, "the new server has the agent", w.servers[0].ready)

	w.cut.Store(true)
	for _, s := range w.servers {
		kit.Eventually(t, s.name+" has lost the agent", func() string {
			if s.ready() == "" {
				return "it is ready"
			}
			return ""
		})
	}
	if why := w.changed(); why == "" {
		t.Error("the webhook answers while the tunnel is cut")
	}
	w.cut.Store(false)
	kit.Eventually(t, "the tunnel is used again", func() string { return w.logs() + w.changed() })
}

// nodes creates a node with a kubelet, and one without.
func (w *world) nodes() {
	w.Helper()
	certificate, key := w.authority.Issue(w, "kubelet", nodeAddress)
	w.serve(nodeAddress+":10250", certificate, key, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		_, _ = io.WriteString(writer, "kubelet "+request.URL.Path)
	}))
	for name, address := range map[string]string{"node": nodeAddress, "gone": "192.0.2.11"} {
		node, err := w.client.CoreV1().Nodes().Create(w.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		kit.Must(w, err)
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
		_, err = w.client.CoreV1().Nodes().UpdateStatus(w.Context(), node, metav1.UpdateOptions{})
		kit.Must(w, err)
	}
}

// logs returns why the kubelet does not answer.
func (w *world) logs() string {
	answer, err := w.client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/node/proxy/logs").DoRaw(w.Context())
	if err != nil {
		return err.Error()
	}
	if string(answer) != "kubelet /logs/" && string(answer) != "kubelet /logs" {
		return "the kubelet says " + string(answer)
	}
	return ""
}

// webhook makes a webhook behind a Service label ConfigMaps.
func (w *world) webhook() {
	w.Helper()
	certificate, key := w.authority.Issue(w, "webhook", "webhook.default.svc")
	w.serve(podAddress+":8443", certificate, key, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(writer, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
			Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"seen":"true"}}]`),
		}
		review.Request = nil
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(review)
	}))
	ctx, name := w.Context(), metav1.ObjectMeta{Namespace: "default", Name: "webhook"}
	_, err := w.client.CoreV1().Services("default").Create(ctx, &corev1.Service{ObjectMeta: name, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "https", Port: 443}},
	}}, metav1.CreateOptions{})
	kit.Must(w, err)
	name.Labels = map[string]string{discoveryv1.LabelServiceName: name.Name}
	_, err = w.client.DiscoveryV1().EndpointSlices("default").Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: name, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](8443)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{podAddress}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}, metav1.CreateOptions{})
	kit.Must(w, err)
	_, err = w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "webhook.example.org", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "webhook"}, CABundle: w.authority.PEM,
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "default"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	kit.Must(w, err)
}

// changed returns why the webhook does not change a new object.
func (w *world) changed() string {
	created, err := w.client.CoreV1().ConfigMaps("default").Create(
		w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "seen-"}}, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	if created.Labels["seen"] != "true" {
		return "the webhook was not asked"
	}
	return ""
}

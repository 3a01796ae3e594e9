package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// drifts changes a ConfigMap of a ManagedResource, and waits until the change is reverted.
func (h *helm) drifts(name string) {
	h.Helper()
	live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
	kit.Change(h, h.client, live, func() { live.Data["key"] = "changed" })
	kit.Eventually(h, "drift is corrected", func() string {
		if err := h.get(live, "", name); err != nil {
			return err.Error()
		}
		if live.Data["key"] != "value" {
			return "the value is " + live.Data["key"]
		}
		return ""
	})
}

// requestsToken requests a token, and withdraws the request. The objects created for it must be deleted.
func (h *helm) requestsToken() {
	h.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name:   "asks",
		Labels: map[string]string{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot},
		Annotations: map[string]string{
			resourcesv1alpha1.AnnotationServiceAccountName: "client", resourcesv1alpha1.AnnotationServiceAccountNamespace: h.namespace,
			resourcesv1alpha1.AnnotationTokenTargetName: "client-token", resourcesv1alpha1.AnnotationTokenTargetNamespace: h.namespace,
		},
	}}
	h.create(secret)
	kit.Eventually(h, "the target Secret has a token", func() string {
		target := &corev1.Secret{}
		if err := h.get(target, "", "client-token"); err != nil {
			return err.Error()
		}
		if len(target.Data["token"]) == 0 {
			return "the Secret has no token"
		}
		return ""
	})
	// A changed label of the ServiceAccount triggers another apply and a review of the token.
	kit.Change(h, h.client, secret, func() {
		secret.Annotations["serviceaccount.resources.gardener.cloud/labels"] = `{"a":"b"}`
	})
	kit.Eventually(h, "the ServiceAccount has the label", func() string {
		account := &corev1.ServiceAccount{}
		if err := h.get(account, "", "client"); err != nil {
			return err.Error()
		}
		if account.Labels["a"] != "b" {
			return "the label is missing"
		}
		return ""
	})
	kit.Must(h, h.client.Delete(h.Context(), secret))
	h.eventuallyGone(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "client-token"}})
	h.eventuallyGone(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "client"}})
}

// opensNetwork creates a Service and changes and deletes it, so that its policies are created, changed and
// deleted.
func (h *helm) opensNetwork() {
	h.Helper()
	const annotation = "networking.resources.gardener.cloud/from-world-to-ports"
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{annotation: `[{"port":8080}]`}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
	h.create(service)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "ingress-to-shop-from-world"}}
	kit.EventuallyTrue(h, "the policy exists", func() bool { return h.get(policy, "", policy.Name) == nil })
	kit.Must(h, h.client.Delete(h.Context(), service))
	h.eventuallyGone(policy)
}

// losesTaint taints a Node as if its critical components were not ready, and waits until the taint is removed.
func (h *helm) losesTaint(name string) {
	h.Helper()
	const taint = "node.gardener.cloud/critical-components-not-ready"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	kit.Change(h, h.client, node, func() {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule})
	})
	kit.Eventually(h, "the taint is removed", func() string {
		if err := h.client.Get(h.Context(), client.ObjectKey{Name: name}, node); err != nil {
			return err.Error()
		}
		for _, one := range node.Spec.Taints {
			if one.Key == taint {
				return "the taint still exists"
			}
		}
		return ""
	})
}

// invalidatesToken creates a static token of a ServiceAccount that does not mount tokens.
func (h *helm) invalidatesToken() {
	h.Helper()
	h.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "static"}, AutomountServiceAccountToken: ptr.To(false)})
	h.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "static", Annotations: map[string]string{corev1.ServiceAccountNameKey: "static"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	})
	kit.EventuallyTrue(h, "the token is labelled", func() bool {
		secret := &corev1.Secret{}
		return h.get(secret, "", "static") == nil && secret.Labels[resourcesv1alpha1.LabelPurpose] != ""
	})
}

// approves requests a certificate for a kubelet. The request is denied, because it contains an address that the
// Node does not have.
func (h *helm) approves(node string) {
	h.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(h, err)
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, DNSNames: []string{"elsewhere.example.org"},
	}, key)
	kit.Must(h, err)
	config := shared.Get(h).Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated", "system:masters"}} // RBAC does not apply to this group
	kubelet, err := client.New(config, client.Options{Scheme: h.client.Scheme()})
	kit.Must(h, err)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kubelet-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}),
			SignerName: certificatesv1.KubeletServingSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
	kit.Must(h, kubelet.Create(h.Context(), request))
	kit.EventuallyTrue(h, "the request is decided", func() bool {
		return h.client.Get(h.Context(), client.ObjectKeyFromObject(request), request) == nil && len(request.Status.Conditions) > 0
	})
}

// trustsWebhooks waits until the webhook configurations have a CA bundle.
func (h *helm) trustsWebhooks() {
	h.Helper()
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		kit.Eventually(h, kind+" has a CA bundle", func() string {
			configuration := &unstructured.Unstructured{}
			configuration.SetAPIVersion("admissionregistration.k8s.io/v1")
			configuration.SetKind(kind)
			if err := h.client.Get(h.Context(), client.ObjectKey{Name: manager}, configuration); err != nil {
				return err.Error()
			}
			hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
			kit.Must(h, err)
			for _, hook := range hooks {
				fields, is := hook.(map[string]any)
				if bundle, _, _ := unstructured.NestedString(fields, "clientConfig", "caBundle"); !is || bundle == "" {
					return "the CA bundle is missing"
				}
			}
			return ""
		})
	}
}

// mendsCertificate breaks the certificate of the webhooks, and waits until it is replaced.
func (h *helm) mendsCertificate() {
	h.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: manager + "-webhooks"}}
	kit.Change(h, h.client, secret, func() { secret.Data["tls.crt"] = []byte("broken") })
	kit.EventuallyTrue(h, "the certificate is replaced", func() bool {
		return h.get(secret, "", secret.Name) == nil && string(secret.Data["tls.crt"]) != "broken"
	})
}

// eventuallyAvailable waits until the Pods of the Deployment run in the restricted namespace.
func (h *helm) eventuallyAvailable(name string) {
	h.Helper()
	kit.Eventually(h, "the Pods run", func() string {
		deployment := &appsv1.Deployment{}
		if err := h.get(deployment, "", name); err != nil {
			return err.Error()
		}
		if deployment.Status.AvailableReplicas == *deployment.Spec.Replicas && deployment.Status.UpdatedReplicas == *deployment.Spec.Replicas {
			return ""
		}
		return deployment.Status.String()
	})
}

// showsPage checks that the page shows a ManagedResource to a permitted user, and nothing to others.
func (h *helm) showsPage(name string) {
	h.Helper()
	page := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	url := fmt.Sprintf("https://127.0.0.1:%d/api/changes", h.pagePort)
	token := kit.NewViewer(h, h.client, h.namespace, "viewer")
	kit.Eventually(h, "the page lists the ManagedResource", func() string {
		if line, status := kit.View(h, page, url, token); status != http.StatusOK || !strings.Contains(line, `"name":"`+name+`"`) {
			return fmt.Sprintf("status %d: %s", status, line)
		}
		return ""
	})
	if line, status := kit.View(h, page, url, ""); status != http.StatusUnauthorized {
		h.Errorf("without a token: %d %s", status, line)
	}
}

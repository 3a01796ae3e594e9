package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/pki"
)

// ingressDomain is the domain for Ingresses of the seed.
const ingressDomain = "ingress.local.seed.example.org"

// testIngress checks that all hosts of the domain for Ingresses, and no others, lead to the ingress controller in the namespace garden, and that a
// namespace of something else can take none of them.
func (w *world) testIngress(t *testing.T) {
	authority := pki.New(t, "ca-ingress")
	w.serveIngress(t, authority)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace, Labels: map[string]string{constants.LabelGardenRole: constants.RoleGarden}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension-other", Labels: map[string]string{constants.LabelGardenRole: constants.RoleExtension}}})
	service := metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: nginxingress.Service, Labels: map[string]string{discoveryv1.LabelServiceName: nginxingress.Service}}
	w.create(&corev1.Service{ObjectMeta: service, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: nginxingress.Port}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: service, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](443)}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.50"}}},
		})
	for _, from := range []string{constants.GardenNamespace, "extension-other"} {
		routes, err := apiserverexposure.Objects(apiserverexposure.Values{
			Namespace: from, Service: nginxingress.Service, Port: nginxingress.Port, Mode: exposure.GatewayAPI, Hosts: []string{"*." + ingressDomain},
			Gateways: []exposure.Gateway{{Namespace: namespace}},
		})
		kit.Must(t, err)
		w.create(routes...)
	}
	kit.Eventually(t, "a host of the domain leads to the ingress controller", func() string { return w.getIngress(authority, "plutono."+ingressDomain) })
	for _, host := range []string{ingressDomain, "plutono.other.example.org"} {
		if w.getIngress(authority, host) == "" {
			t.Errorf("%s leads to the ingress controller", host)
		}
	}
	kit.Eventually(t, "the route of another namespace is refused", func() string {
		route := &gatewayv1.TLSRoute{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "extension-other", Name: nginxingress.Service}, route); err != nil {
			return err.Error()
		}
		if len(route.Status.Parents) != 1 || !meta.IsStatusConditionFalse(route.Status.Parents[0].Conditions, string(gatewayv1.RouteConditionAccepted)) {
			return "it is not refused yet"
		}
		return ""
	})
}

// serveIngress answers at the address of the ingress controller, with a certificate for all hosts of the domain.
func (w *world) serveIngress(t *testing.T, authority *pki.Authority) {
	t.Helper()
	files := authority.Write(t, nil, "ingress", "*."+ingressDomain, "*.other.example.org", ingressDomain)
	certificate, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	kit.Must(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		_, _ = io.WriteString(writer, request.Host)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.network["192.0.2.50:443"] = server.Listener.Addr().String()
}

// getIngress requests a host through the gateway, and returns why the ingress controller does not answer.
func (w *world) getIngress(authority *pki.Authority, host string) string {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM)
	transport := &http.Transport{DialContext: w.balance(), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("https://" + host + "/")
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != host {
		return "the answer is " + string(text)
	}
	return ""
}

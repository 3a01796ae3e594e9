package shoot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/discoveryserver"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/pki"
)

// issuerHost is the host of managed issuers in the garden of the test.
const issuerHost = "discovery.example.org"

// TestManagedIssuer checks that everybody can verify a token of a Shoot with the documents at its issuer: gardenlet publishes them with the rights that
// the controller-manager grants, and the discovery server serves them. Without a host in the Seed's namespace, the Shoot reports that.
func TestManagedIssuer(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	w.restrict()
	w.gardenlet()
	get := w.discoveryServer()

	host := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenNamespace, Name: "issuer", Labels: map[string]string{constants.LabelGardenRole: constants.RoleShootServiceAccountIssuer},
	}, Data: map[string][]byte{issuer.KeyHost: []byte("not a host")}}
	w.create(w.garden, host)
	t.Cleanup(func() { _ = w.garden.Delete(context.WithoutCancel(t.Context()), host) })
	w.declare(func(shoot *corev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationAuthenticationIssuer, issuer.Managed)
	})
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateError, "is not a host name")
	kit.Change(t, w.garden, host, func() { host.Data[issuer.KeyHost] = []byte(issuerHost) })

	w.startServer()
	w.startManager()
	shoot := w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	url := "https://" + issuerHost + "/projects/dev/shoots/" + string(shoot.UID) + "/issuer"
	if addresses := shoot.Status.AdvertisedAddresses; addresses[len(addresses)-1].URL != url {
		t.Errorf("the advertised addresses are %v", addresses)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
	w.create(w.admin(), account)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"sts.example.org"}}}
	kit.Must(t, w.admin().SubResource("token").Create(t.Context(), account, request))
	kit.Eventually(t, "the token is verified", func() string { return verified(get, url, request.Status.Token) })

	w.deletion()
	documents := &corev1.SecretList{}
	kit.Must(t, w.garden.List(t.Context(), documents, client.InNamespace(constants.SystemShootIssuerNamespace)))
	for i := range documents.Items {
		if strings.HasSuffix(documents.Items[i].Name, string(shoot.UID)) {
			t.Errorf("the documents of the deleted Shoot are still in Secret %s", documents.Items[i].Name)
		}
	}
	kit.Eventually(t, "the documents are not served any more", func() string {
		if _, status := get(url + issuer.PathKeys); status != http.StatusNotFound {
			return "the status is " + strconv.Itoa(status)
		}
		return ""
	})
}

// verified verifies a token like those who accept it: with nothing but its issuer. It returns what is wrong.
func verified(get func(url string) ([]byte, int), url, text string) string {
	var configuration struct {
		Issuer     string                    `json:"issuer"`
		KeysURI    string                    `json:"jwks_uri"`
		Algorithms []jose.SignatureAlgorithm `json:"id_token_signing_alg_values_supported"`
	}
	content, status := get(url + issuer.PathConfiguration)
	if err := json.Unmarshal(content, &configuration); err != nil || configuration.Issuer != url {
		return "the configuration has the status " + strconv.Itoa(status) + ": " + string(content)
	}
	var set jose.JSONWebKeySet
	content, status = get(configuration.KeysURI)
	if err := json.Unmarshal(content, &set); err != nil {
		return "the keys have the status " + strconv.Itoa(status) + ": " + string(content)
	}
	token, err := jwt.ParseSigned(text, configuration.Algorithms)
	if err != nil {
		return err.Error()
	}
	claims := jwt.Claims{}
	if err := token.Claims(set, &claims); err != nil {
		return err.Error()
	}
	err = claims.Validate(jwt.Expected{Issuer: url, AnyAudience: jwt.Audience{"sts.example.org"}, Subject: "system:serviceaccount:default:robot", Time: time.Now()})
	return kit.TextOf(err)
}

// discoveryServer runs a discovery server with its documented rights, and returns a function that reads a URL below issuerHost from it.
func (w *world) discoveryServer() (get func(url string) ([]byte, int)) {
	w.Helper()
	const user = "discovery-server"
	name := metav1.ObjectMeta{Namespace: constants.SystemShootIssuerNamespace, Name: user}
	w.create(w.garden, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}}}})
	w.create(w.garden, &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name.Namespace, Name: user}},
	})
	account, request := &corev1.ServiceAccount{ObjectMeta: name}, &authenticationv1.TokenRequest{}
	w.create(w.garden, account)
	kit.Must(w, w.garden.SubResource("token").Create(w.Context(), account, request))
	config, err := clientcmd.Load(w.gardens.Kubeconfig())
	kit.Must(w, err)
	for key := range config.AuthInfos {
		config.AuthInfos[key] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	directory := w.TempDir()
	files := map[string]string{}
	for _, file := range []string{"kubeconfig", "tls.crt", "tls.key"} {
		files[file] = filepath.Join(directory, file)
	}
	kit.Must(w, clientcmd.WriteToFile(*config, files["kubeconfig"]))
	authority := pki.New(w, "discovery")
	certificate, key := authority.Issue(w, issuerHost, issuerHost)
	kit.Must(w, os.WriteFile(files["tls.crt"], certificate, 0o600))
	kit.Must(w, os.WriteFile(files["tls.key"], key, 0o600))
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(kit.FreePort(w)))
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- discoveryserver.Run(ctx, discoveryserver.Options{
			Version: "v1", Kubeconfig: files["kubeconfig"], CertificateFile: files["tls.crt"], KeyFile: files["tls.key"],
			Address: address, HealthAddress: "0", MetricsAddress: "0", LogLevel: "error", LogFormat: "text", Registry: prometheus.NewRegistry(),
		})
	}()
	w.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.Errorf("the discovery server: %v", err)
		}
	})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.PEM)
	reader := &http.Client{Timeout: kit.WaitTimeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	return func(url string) ([]byte, int) {
		request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, url, nil)
		kit.Must(w, err)
		answer, err := reader.Do(request)
		if err != nil {
			return []byte(err.Error()), 0
		}
		defer answer.Body.Close()
		content, err := io.ReadAll(answer.Body)
		kit.Must(w, err)
		return content, answer.StatusCode
	}
}

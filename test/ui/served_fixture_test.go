package ui

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/ui/gate"
	"github.com/trellis-k8s/trellis/test/kit"
)

// served is a page for many viewers, as the resource-manager serves it.
type served struct {
	base  string
	plain *http.Client
}

// serveToMany serves the page until the test ends. Its cache is filled with the rights of an administrator, like that of the
// resource-manager.
func (w *world) serveToMany(t *testing.T, change ...func(*gate.Options)) *served {
	t.Helper()
	config := shared.Get(t).Config()
	options := gate.Options{Source: rest.AnonymousClientConfig(config), Version: "v0.0.0-test", Clock: clock.RealClock{}, Metrics: gate.NewMetrics(prometheus.NewRegistry())}
	for _, each := range change {
		each(&options)
	}
	page, err := gate.New(options)
	kit.Must(t, err)
	informers, err := cache.New(config, cache.Options{Scheme: console.Scheme()})
	kit.Must(t, err)
	directory := t.TempDir()
	authority := kit.NewAuthority(t)
	authority.Issue(t, directory, time.Now().Add(time.Hour))
	certificate, err := tls.LoadX509KeyPair(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
	kit.Must(t, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(kit.FreePort(t)))
	server := &gate.Server{
		Gate: page, Address: address, Log: logr.Discard(), Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
		Follow: func(ctx context.Context) error {
			informer, err := informers.GetInformer(ctx, &resourcesv1alpha1.ManagedResource{})
			if err != nil {
				return err
			}
			return page.FollowInformer(ctx, informer)
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- informers.Start(ctx) }()
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("the page ended with %v", err)
			}
		}
	})
	s := &served{base: "https://" + address, plain: trusting()}
	kit.Eventually(t, "the page is served", func() string {
		response, err := s.plain.Get(s.base + "/api/about")
		if err != nil {
			return err.Error()
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusUnauthorized {
			return response.Status
		}
		return ""
	})
	return s
}

// trusting returns a client that trusts any certificate.
func trusting() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// as returns the page as a viewer with the given token sees it.
func (s *served) as(token string, header ...string) *site {
	return &site{base: s.base, http: &http.Client{Transport: kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Authorization", "Bearer "+token)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return s.plain.Transport.RoundTrip(r)
	})}}
}

// viewing returns the rights to see ManagedResources, to read the objects for explanations and comparisons, and to read Events.
func viewing() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{resourcesv1alpha1.GroupName}, Resources: []string{"managedresources"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"configmaps", "secrets", "events"}, Verbs: []string{"get", "list"}},
	}
}

// account creates a ServiceAccount with rights in its namespace, and returns its user name and a token. Deleting the RoleBinding
// "viewer-NAME" withdraws the rights.
func (w *world) account(t *testing.T, namespace, name string, rules []rbacv1.PolicyRule) (user, token string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	kit.Must(t, w.client.Create(t.Context(), account))
	named := metav1.ObjectMeta{Namespace: namespace, Name: "viewer-" + name}
	kit.Must(t, w.client.Create(t.Context(), &rbacv1.Role{ObjectMeta: named, Rules: rules}))
	kit.Must(t, w.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
	}))
	request := &authenticationv1.TokenRequest{}
	kit.Must(t, w.client.SubResource("token").Create(t.Context(), account, request))
	return "system:serviceaccount:" + namespace + ":" + name, request.Status.Token
}

// everywhere grants a ServiceAccount rights in all namespaces until the test ends.
func (w *world) everywhere(t *testing.T, namespace, name string, rules []rbacv1.PolicyRule) {
	t.Helper()
	named := metav1.ObjectMeta{Name: namespace + "-" + name}
	role := &rbacv1.ClusterRole{ObjectMeta: named, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
	}
	kit.Must(t, w.client.Create(t.Context(), role))
	kit.Must(t, w.client.Create(t.Context(), binding))
	t.Cleanup(func() {
		_ = w.client.Delete(context.Background(), binding)
		_ = w.client.Delete(context.Background(), role)
	})
}

// recordDrift creates an Event about a ManagedResource that drifted.
func (w *world) recordDrift(t *testing.T, mr *resourcesv1alpha1.ManagedResource, message string) {
	t.Helper()
	kit.Must(t, w.client.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name + ".1"}, Reason: "Corrected", Message: message, Type: "Normal", LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: "ManagedResource", Namespace: mr.Namespace, Name: mr.Name, UID: mr.UID, APIVersion: resourcesv1alpha1.SchemeGroupVersion.String()},
	}))
}

// audited is a request in the audit log of the API server.
type audited struct {
	Verb, UserAgent, RequestURI string
	User                        struct{ Username string }
}

// audit returns the page's requests for namespaces.
func audit(t *testing.T, namespaces ...string) []audited {
	t.Helper()
	file, err := os.Open(shared.Options.AuditLog)
	kit.Must(t, err)
	defer file.Close()
	var found []audited
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<22)
	for scanner.Scan() {
		var one audited
		if json.Unmarshal(scanner.Bytes(), &one) != nil || !strings.Contains(one.UserAgent, "(page)") {
			continue // the last line is incomplete, or the request is another client's
		}
		for _, namespace := range namespaces {
			if strings.Contains(one.RequestURI, "/namespaces/"+namespace+"/") {
				found = append(found, one)
			}
		}
	}
	return found
}

// post sends JSON.
func (s *served) post(t *testing.T, path, body string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+path, strings.NewReader(body))
	kit.Must(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(request)
	}
	response, err := s.plain.Do(request)
	kit.Must(t, err)
	return response, kit.ReadAll(t, response.Body)
}

func loginOf(token, target string) string {
	return fmt.Sprintf(`{"token":%q,"targetToken":%q}`, token, target)
}

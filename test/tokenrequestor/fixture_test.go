// Package tokenrequestor tests the token requestor on a real API server.
package tokenrequestor

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/tokenrequestor"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

// shared accepts the audience of the tokens like the API servers of Gardener's clusters, so that the tokens can be used.
var shared = controlplane.Shared{Options: controlplane.Options{APIServerArgs: map[string][]string{
	"api-audiences": {"https://kubernetes.default.svc.cluster.local", "gardener"},
}}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// fixture has one namespace each for the source and the target cluster, which are the same cluster, and a reconciler that the test
// calls. The API server's clock is the clock of the test plus a skew.
type fixture struct {
	*testing.T
	ctx context.Context
	// client is the client of the test.
	client         client.Client
	kubernetes     kubernetes.Interface
	config         *rest.Config
	source, target string
	clock          *clocktesting.FakeClock
	reconciler     *tokenrequestor.Reconciler
	recorder       *events.FakeRecorder
	registry       *prometheus.Registry
	requests       *kit.Requests
	server         *server
	log            *logLines
	// random is the random number for the jitter.
	random float64
}

// server changes what the API server answers.
type server struct {
	clock *clocktesting.FakeClock
	mu    sync.Mutex
	// skew is how far the API server's clock is ahead.
	skew time.Duration
	// answer may answer in place of the API server. If it returns nil, the request is forwarded.
	answer func(*http.Request) (*http.Response, error)
}

func (s *server) wrap(next http.RoundTripper) http.RoundTripper {
	return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
		s.mu.Lock()
		answer, skew := s.answer, s.skew
		s.mu.Unlock()
		var response *http.Response
		var err error
		if answer != nil {
			response, err = answer(request)
		}
		if response == nil && err == nil {
			response, err = next.RoundTrip(request)
		}
		if err == nil {
			response.Header.Set("Date", s.clock.Now().Add(skew).UTC().Format(http.TimeFormat))
		}
		return response, err
	})
}

// set changes the server.
func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// logLines is a log.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(prefix + " " + args + "\n")
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, shared.Get(t).Config())
}

func newFixtureOn(t *testing.T, config *rest.Config) *fixture {
	t.Helper()
	f := &fixture{
		T: t, config: config, clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), recorder: events.NewFakeRecorder(1000),
		registry: prometheus.NewRegistry(), requests: &kit.Requests{}, log: &logLines{}, random: 0.5,
	}
	f.server = &server{clock: f.clock}
	f.ctx = log.IntoContext(t.Context(), funcr.New(f.log.add, funcr.Options{Verbosity: 5}))
	var err error
	f.client, err = client.New(config, client.Options{Scheme: newScheme(t)})
	kit.Must(t, err)
	f.kubernetes, err = kubernetes.NewForConfig(config)
	kit.Must(t, err)
	f.source, f.target = kit.NewNamespace(t, f.client, "source", nil), kit.NewNamespace(t, f.client, "target", nil)
	f.start(nil)
	return f
}

func newScheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	kit.Must(tb, clientgoscheme.AddToScheme(scheme))
	kit.Must(tb, resourcesv1alpha1.AddToScheme(scheme))
	return scheme
}

// start replaces the reconciler by a newly started one.
func (f *fixture) start(tune func(*tokenrequestor.Reconciler)) {
	f.Helper()
	config := rest.CopyConfig(f.config)
	config.Wrap(f.requests.Wrap)
	direct, err := client.New(config, client.Options{Scheme: newScheme(f)})
	kit.Must(f, err)
	clock := tokenrequestor.NewServerClock(f.clock)
	config = rest.CopyConfig(config)
	config.Wrap(f.server.wrap)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json" // the simulated API server supports only JSON
	config.Wrap(clock.Wrap)
	target, err := kubernetes.NewForConfig(config)
	kit.Must(f, err)
	meta, err := metadata.NewForConfig(config)
	kit.Must(f, err)
	f.registry = prometheus.NewRegistry()
	f.reconciler = &tokenrequestor.Reconciler{
		Source: direct, Direct: direct, Core: target.CoreV1(), Reviews: target.AuthenticationV1().TokenReviews(), Metadata: meta,
		Target: config, ServerClock: clock, Recorder: f.recorder, Metrics: tokenrequestor.NewMetrics(f.registry), Clock: f.clock,
		Random: func() float64 { return f.random }, Options: tokenrequestor.Options{Class: "shoot", ConcurrentSyncs: 5},
	}
	if tune != nil {
		tune(f.reconciler)
	}
}

const (
	accountKeys = "serviceaccount.resources.gardener.cloud/"
	targetKeys  = "token-requestor.resources.gardener.cloud/target-secret-"
	renewal     = accountKeys + "token-renew-timestamp"
)

// newSource creates a Secret that requests a token of the ServiceAccount of its name. Without a name, the API server generates one.
func (f *fixture) newSource(name string, data map[string]string, annotations ...string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.source, Name: name,
			Labels: map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
			Annotations: map[string]string{
				"serviceaccount.resources.gardener.cloud/name":      name,
				"serviceaccount.resources.gardener.cloud/namespace": f.target,
			},
		},
		StringData: data,
	}
	if annotate(secret, annotations...); name == "" {
		secret.GenerateName = "generated-"
	}
	kit.Must(f, f.client.Create(f.ctx, secret))
	return secret
}

// annotate sets annotations, and removes those with an empty value.
func annotate(obj client.Object, annotations ...string) {
	all := obj.GetAnnotations()
	for i := 0; i < len(annotations); i += 2 {
		all[annotations[i]] = annotations[i+1]
		if annotations[i+1] == "" {
			delete(all, annotations[i])
		}
	}
	obj.SetAnnotations(all)
}

// sync returns the annotations that make the token requestor write the token to a target Secret.
func (f *fixture) sync(name string) []string {
	return []string{targetKeys + "name", name, targetKeys + "namespace", f.target}
}

// change changes a Secret.
func (f *fixture) change(secret *corev1.Secret, change func(*corev1.Secret)) {
	f.Helper()
	kit.Change(f, f.client, secret, func() { change(secret) }, client.FieldOwner("test"))
}

func (f *fixture) try(name string) (reconcile.Result, error) {
	return f.reconciler.Reconcile(f.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: f.source, Name: name}})
}

// reconcile reconciles once, without an error, and returns the Secret after it.
func (f *fixture) reconcile(name string) (*corev1.Secret, reconcile.Result) {
	f.Helper()
	result, err := f.try(name)
	kit.Must(f, err)
	return f.secret(f.source, name), result
}

// secret reads a Secret. It returns nil if the Secret does not exist.
func (f *fixture) secret(namespace, name string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{}
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	kit.Must(f, err)
	return secret
}

// account reads a ServiceAccount of the target cluster. It returns nil if the ServiceAccount does not exist.
func (f *fixture) account(name string) *corev1.ServiceAccount {
	f.Helper()
	account := &corev1.ServiceAccount{}
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.target, Name: name}, account)
	if apierrors.IsNotFound(err) {
		return nil
	}
	kit.Must(f, err)
	return account
}

// accepted returns the API server's review of a token.
func (f *fixture) accepted(token string) authenticationv1.TokenReviewStatus {
	f.Helper()
	review, err := f.kubernetes.AuthenticationV1().TokenReviews().Create(f.ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"gardener"}},
	}, metav1.CreateOptions{})
	kit.Must(f, err)
	return review.Status
}

// wantToken checks that a token belongs to a ServiceAccount.
func (f *fixture) wantToken(token, account string) {
	f.Helper()
	status := f.accepted(token)
	if !status.Authenticated || status.User.Username != "system:serviceaccount:"+f.target+":"+account {
		f.Errorf("the review is %+v for the token of %s", status, account)
	}
}

// sent returns the requests since the last call as "<method> <resource>". The resource includes its subresource.
func (f *fixture) sent() string {
	var all []string
	for _, request := range f.requests.Single() {
		if request.Path == "/api" || request.Path == "/apis" {
			continue // discovery of a new client
		}
		parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(request.Path, "/api/v1/namespaces/"), "/apis/"), "/")
		switch {
		case len(parts) > 3:
			all = append(all, request.Method+" "+parts[1]+"/"+parts[3])
		case len(parts) > 1 && strings.HasPrefix(request.Path, "/api/v1/"):
			all = append(all, request.Method+" "+parts[1])
		default:
			all = append(all, request.Method+" "+parts[len(parts)-1])
		}
	}
	f.requests.Forget()
	return strings.Join(all, ", ")
}

// event returns the next Event. It is empty if none was recorded.
func (f *fixture) event() string {
	select {
	case event := <-f.recorder.Events:
		return event
	default:
		return ""
	}
}

func (f *fixture) wantEvent(parts ...string) {
	f.Helper()
	event := f.event()
	for _, part := range parts {
		if !strings.Contains(event, part) {
			f.Errorf("the Event is %q, want one with %q", event, part)
		}
	}
}

// metric returns the value of a metric.
func (f *fixture) metric(name, label string) float64 {
	f.Helper()
	families, err := f.registry.Gather()
	kit.Must(f, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "resource_manager_"+name && (label == "" || metric.GetLabel()[0].GetValue() == label) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	f.Errorf("no metric %s %s found", name, label)
	return 0
}

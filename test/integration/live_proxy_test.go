package integration

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// proxy is an HTTP proxy between a resource-manager and the API server, with administrator rights. It records
// requests, and breaks those that a test selects.
type proxy struct {
	// kubeconfig is the path of a kubeconfig that reaches the API server through the proxy.
	kubeconfig string

	mu     sync.Mutex
	asked  []question
	tamper func(http.Handler) http.Handler
	// cut ends all requests in progress.
	cut    context.CancelFunc
	unless context.Context //nolint:containedctx // of all requests until the next cut
}

// question is a request that passed through the proxy.
type question struct {
	method, path, agent string
	watch               bool
	at                  time.Time
}

func (q question) String() string { return q.method + " " + q.path }

// newProxy starts a proxy that stops at the end of the test.
func (f *fixture) newProxy() *proxy {
	f.Helper()
	config := shared.Get(f).Config()
	address, _, err := rest.DefaultServerUrlFor(config)
	must(f, err)
	transport, err := rest.TransportFor(config)
	must(f, err)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: address.Scheme, Host: address.Host}) },
		Transport:     transport,
		FlushInterval: -1, // forward watch events at once
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	p := &proxy{}
	p.cutWatches()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, unless := p.handler(r, forward)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(unless, cancel)()
		defer endWell(unless)
		handler.ServeHTTP(w, r.WithContext(ctx))
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = forward.ErrorLog
	server.StartTLS()
	f.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	authority := &bytes.Buffer{}
	must(f, pem.Encode(authority, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	p.kubeconfig = f.kubeconfig(func(user *clientcmdapi.AuthInfo, cluster *clientcmdapi.Cluster) {
		*user = clientcmdapi.AuthInfo{}
		cluster.Server, cluster.CertificateAuthorityData = server.URL, authority.Bytes()
	})
	return p
}

// asTarget returns the part of a configuration that connects to the target cluster through the proxy.
func (p *proxy) asTarget() string {
	return "targetClientConnection: {kubeconfig: " + p.kubeconfig + ", qps: -1}\n"
}

// handler records a request. It returns the handler that responds to it, and the context that ends the response.
func (p *proxy) handler(r *http.Request, forward http.Handler) (http.Handler, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, question{r.Method, r.URL.Path, r.UserAgent(), isWatch(r), time.Now()})
	if p.tamper != nil {
		return p.tamper(forward), p.unless
	}
	return forward, p.unless
}

// cutWatches ends all requests in progress, as if the responses were complete.
func (p *proxy) cutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil {
		p.cut()
	}
	p.unless, p.cut = context.WithCancel(context.Background())
}

// breakWith makes tamper wrap the responses of the API server for all further requests. nil stops that.
func (p *proxy) breakWith(tamper func(http.Handler) http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = tamper
}

// forget drops the requests recorded so far.
func (p *proxy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = nil
}

// questions returns the recorded requests, in order.
func (p *proxy) questions() []question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// single returns the requests that are not watches. A resource-manager at rest sends none.
func (p *proxy) single() []question {
	return slices.DeleteFunc(p.questions(), func(q question) bool { return q.watch })
}

// watchesOf counts the watches of a resource that were started.
func (p *proxy) watchesOf(resource string) int {
	count := 0
	for _, question := range p.questions() {
		if question.watch && strings.HasSuffix(question.path, "/"+resource) {
			count++
		}
	}
	return count
}

func isWatch(r *http.Request) bool {
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watch
}

// endWell ends a response like a complete one if a context canceled it.
func endWell(ctx context.Context) {
	if cause := recover(); cause != nil && (ctx.Err() == nil || fmt.Sprint(cause) != http.ErrAbortHandler.Error()) {
		panic(cause)
	}
}

// shortWatches ends every watch after the given time: every second one like an API server, the others like a broken
// connection.
func shortWatches(after time.Duration) func(http.Handler) http.Handler {
	count := atomic.Int64{}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isWatch(r) {
				ctx, cancel := context.WithTimeout(r.Context(), after)
				defer cancel()
				r = r.WithContext(ctx)
				if count.Add(1)%2 == 0 {
					defer endWell(ctx)
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// metric returns the value of the first metric whose line begins with a text, or -1 if no line does.
func (p *process) metric(line string) float64 {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, "http://"+p.Metrics+"/metrics", nil)
	must(p, err)
	response, err := http.DefaultClient.Do(request)
	must(p, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must(p, err)
	for text := range strings.Lines(string(content)) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(text), line+" "); found {
			value, err := strconv.ParseFloat(rest, 64)
			must(p, err)
			return value
		}
	}
	return -1
}

const (
	// onlyEvents leaves drift to the watches. The sync period is too long to find it.
	onlyEvents = "controllers: {managedResource: {syncPeriod: 1h}}\n" + noElection

	watchesWatching = `resource_manager_live_watches{state="watching"}`
	watchesFailing  = `resource_manager_live_watches{state="failing"}`
)

// eventuallySucceeded waits until the current generation of a ManagedResource is applied.
func (f *fixture) eventuallySucceeded(name string) {
	f.Helper()
	f.eventually(name+" is applied", func() bool {
		mr := f.read(name)
		return mr.Status.ObservedGeneration == mr.Generation && mr.Status.AppliedInputs != "" &&
			applied(mr).Status == resourcesv1alpha1.ConditionTrue
	})
}

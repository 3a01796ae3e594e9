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

// proxy stands between a resource-manager and the API server, as an administrator. It keeps what was asked, and breaks what
// a test wants to be broken.
type proxy struct {
	// kubeconfig is the path of a file that leads to the API server by way of the proxy.
	kubeconfig string

	mu     sync.Mutex
	asked  []question
	tamper func(http.Handler) http.Handler
	// cut ends all requests that are being answered.
	cut    context.CancelFunc
	unless context.Context //nolint:containedctx // of the requests until the next cut
}

// question is a request that passed the proxy.
type question struct {
	method, path, agent string
	watch               bool
	at                  time.Time
}

func (q question) String() string { return q.method + " " + q.path }

// newProxy starts a proxy that ends with the test.
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
		FlushInterval: -1, // events of watches are passed on at once
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

// asTarget is the part of a configuration that has the target cluster reached by way of the proxy.
func (p *proxy) asTarget() string {
	return "targetClientConnection: {kubeconfig: " + p.kubeconfig + ", qps: -1}\n"
}

// handler keeps a request and returns what is to answer it, until a context ends.
func (p *proxy) handler(r *http.Request, forward http.Handler) (http.Handler, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, question{r.Method, r.URL.Path, r.UserAgent(), isWatch(r), time.Now()})
	if p.tamper != nil {
		return p.tamper(forward), p.unless
	}
	return forward, p.unless
}

// cutWatches ends all requests that are being answered, as if the answers were complete.
func (p *proxy) cutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil {
		p.cut()
	}
	p.unless, p.cut = context.WithCancel(context.Background())
}

// breakWith has all further requests answered by what tamper makes of the API server; nil ends that.
func (p *proxy) breakWith(tamper func(http.Handler) http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = tamper
}

// forget drops what was asked so far.
func (p *proxy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = nil
}

// questions returns what was asked, in order.
func (p *proxy) questions() []question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// single returns the requests that are no watches: those that rest does not need.
func (p *proxy) single() []question {
	return slices.DeleteFunc(p.questions(), func(q question) bool { return q.watch })
}

// watchesOf counts the watches of a resource that were begun.
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

// endWell has an answer end like a complete one if it was a context that ended it.
func endWell(ctx context.Context) {
	if cause := recover(); cause != nil && (ctx.Err() == nil || fmt.Sprint(cause) != http.ErrAbortHandler.Error()) {
		panic(cause)
	}
}

// shortWatches ends every watch that lives longer: every second one like an API server does, the others like a broken line.
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

// metric returns the value of a metric whose line begins with a text, -1 if there is none.
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
	// onlyEvents leaves drift to the watches: the sync period is too long to notice it.
	onlyEvents = "controllers: {managedResource: {syncPeriod: 1h}}\n" + noElection

	watchesWatching = `resource_manager_live_watches{state="watching"}`
	watchesFailing  = `resource_manager_live_watches{state="failing"}`
)

// eventuallySucceeded waits until a ManagedResource is applied as it is now.
func (f *fixture) eventuallySucceeded(name string) {
	f.Helper()
	f.eventually(name+" is applied", func() bool {
		mr := f.read(name)
		return mr.Status.ObservedGeneration == mr.Generation && mr.Status.AppliedInputs != "" &&
			applied(mr).Status == resourcesv1alpha1.ConditionTrue
	})
}

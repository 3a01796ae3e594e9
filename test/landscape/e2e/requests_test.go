package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// requestTimeout limits each request. requestEvery is the interval between the requests of a user.
	requestTimeout = 10 * time.Second
	// restartTimeout is the timeout of users whose requests wait while the only member of an etcd starts again.
	restartTimeout = time.Minute
	requestEvery   = 100 * time.Millisecond
	// failuresShown is how many failed requests are logged.
	failuresShown = 5
	// connectsEachTime is the name of the user who connects for each request.
	connectsEachTime = "connects-each-time"
)

// user continuously writes and reads a Secret of a cluster, and counts the failed requests.
type user struct {
	name string
	// stop stops the requests.
	stop func()

	mu     sync.Mutex
	in     client.Client
	counts counts
	// answered is when the last request succeeded. succeeded is the number of requests since the last one that failed.
	answered  time.Time
	succeeded int
}

// counts are the counted requests of a user since the last call of take.
type counts struct {
	// refused are failed requests whose connection was refused. lost are writes that were lost when etcd changed its leader.
	requests, failed, refused, lost int
	// gap is the longest time without a response.
	gap    time.Duration
	errors []string
}

func (n counts) String() string {
	text := fmt.Sprintf("%d requests, %d failed, %d of them refused, %d lost by etcd; longest time without a response %s", n.requests, n.failed, n.refused, n.lost, n.gap.Round(time.Millisecond))
	return strings.Join(append([]string{text}, n.errors...), "\n  ")
}

// connection returns a client for the cluster of a Shoot. If alone is set, each request has its own connection.
func (c *cluster) connection(config *rest.Config, alone bool) client.Client {
	c.t.Helper()
	return c.connectionFor(config, alone, requestTimeout)
}

// connectionFor is like connection, with a timeout of requests.
func (c *cluster) connectionFor(config *rest.Config, alone bool, timeout time.Duration) client.Client {
	c.t.Helper()
	tls, err := rest.TLSConfigFor(config)
	must(c.t, err)
	mapper := meta.NewDefaultRESTMapper(nil) // avoids discovery requests, which would not be counted
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	transport, err := rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: tls, DisableKeepAlives: alone, ForceAttemptHTTP2: !alone})
	must(c.t, err)
	in, err := client.New(config, client.Options{HTTPClient: &http.Client{Transport: transport, Timeout: timeout}, Mapper: mapper})
	must(c.t, err)
	return in
}

// startUsers starts two users of the cluster of a Shoot. One keeps its connections, the other one connects for each
// request.
func (c *cluster) startUsers(config *rest.Config) []*user {
	c.t.Helper()
	return []*user{
		c.startUser("keeps-connections", c.connection(config, false)),
		c.startUser(connectsEachTime, c.connection(config, true)),
	}
}

// startUser starts a user until the test ends or stops it.
func (c *cluster) startUser(name string, in client.Client) *user {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.ctx)
	var running sync.WaitGroup
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	must(c.t, client.IgnoreAlreadyExists(in.Create(ctx, object)))
	u := &user{name: name, in: in, answered: time.Now(), stop: func() { cancel(); running.Wait() }}
	c.t.Cleanup(u.stop)
	running.Go(func() { u.run(ctx, object) })
	return u
}

// startRequests sends a request in each interval until the test ends or stops it. request gets the number of the interval, and reports whether it has sent
// something.
func (c *cluster) startRequests(name string, request func(ctx context.Context, number int) (sent bool, err error)) *user {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.ctx)
	var running sync.WaitGroup
	u := &user{name: name, answered: time.Now(), stop: func() { cancel(); running.Wait() }}
	c.t.Cleanup(u.stop)
	running.Go(func() {
		tick := time.NewTicker(requestEvery)
		defer tick.Stop()
		for number := 0; ; number++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			sent, err := request(ctx, number)
			if ctx.Err() != nil {
				return
			}
			if sent {
				u.note(err)
			}
		}
	})
	return u
}

// connect makes a user continue with another client.
func (u *user) connect(in client.Client) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.in = in
}

func (u *user) client() client.Client {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.in
}

// run writes a number and reads it again, until the context ends.
func (u *user) run(ctx context.Context, object *corev1.Secret) {
	tick := time.NewTicker(requestEvery)
	defer tick.Stop()
	for number := 1; ; number++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		in, text := u.client(), strconv.Itoa(number)
		err := in.Patch(ctx, object.DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{"number":%q}}`, text)))
		if ctx.Err() != nil {
			return
		}
		u.note(err)
		if err != nil {
			continue
		}
		read := &corev1.Secret{}
		err = in.Get(ctx, client.ObjectKeyFromObject(object), read)
		if ctx.Err() != nil {
			return
		}
		if found := string(read.Data["number"]); err == nil && found != text {
			err = fmt.Errorf("the user reads %s after writing %s", found, text)
		}
		u.note(err)
	}
}

func (u *user) note(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	u.counts.requests++
	if err == nil {
		u.counts.gap = max(u.counts.gap, now.Sub(u.answered))
		u.answered = now
		u.succeeded++
		return
	}
	u.succeeded = 0
	u.counts.failed++
	if strings.Contains(err.Error(), "connection refused") {
		u.counts.refused++
	}
	if strings.Contains(err.Error(), "etcdserver: request timed out") || strings.Contains(err.Error(), "raft proposal dropped") {
		u.counts.lost++
	}
	if len(u.counts.errors) < failuresShown {
		u.counts.errors = append(u.counts.errors, fmt.Sprintf("%s %v", now.UTC().Format(time.TimeOnly), err))
	}
}

// successes returns the number of requests since the last one that failed.
func (u *user) successes() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.succeeded
}

// sent returns the number of requests since the last call of take.
func (u *user) sent() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts.requests
}

// take returns the counts, and resets them.
func (u *user) take() counts {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.counts
	u.counts = counts{}
	return taken
}

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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// requestTimeout is how long an answer may take, and requestEvery how often a user writes and reads.
	requestTimeout = 10 * time.Second
	requestEvery   = 100 * time.Millisecond
	// failuresShown is how many failed requests are shown.
	failuresShown = 5
)

// user writes and reads an object of a cluster all along, and counts the requests that fail.
type user struct {
	name string

	mu     sync.Mutex
	counts counts
	// answered is when the last request succeeded.
	answered time.Time
}

// counts are the requests of a user since they were taken last.
type counts struct {
	requests, failed, refused int
	// gap is the longest time without an answer.
	gap    time.Duration
	errors []string
}

func (n counts) String() string {
	text := fmt.Sprintf("%d requests, %d failed, %d of them refused; longest time without an answer %s", n.requests, n.failed, n.refused, n.gap.Round(time.Millisecond))
	return strings.Join(append([]string{text}, n.errors...), "\n  ")
}

// startUsers starts two users of the cluster of a kubeconfig: one keeps its connections, the other one connects for each request.
func (c *cluster) startUsers(kubeconfig string) []*user {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(c.t, err)
	tls, err := rest.TLSConfigFor(config)
	must(c.t, err)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	ctx, cancel := context.WithCancel(c.ctx)
	var running sync.WaitGroup
	c.t.Cleanup(func() { cancel(); running.Wait() })
	var users []*user
	for name, alone := range map[string]bool{"keeps-connections": false, "connects-each-time": true} {
		transport := &http.Transport{TLSClientConfig: tls.Clone(), DisableKeepAlives: alone, ForceAttemptHTTP2: !alone}
		in, err := client.New(config, client.Options{HTTPClient: &http.Client{Transport: transport, Timeout: requestTimeout}, Mapper: mapper})
		must(c.t, err)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		must(c.t, in.Create(ctx, object))
		u := &user{name: name, answered: time.Now()}
		users = append(users, u)
		running.Go(func() { u.run(ctx, in, object) })
	}
	return users
}

// run writes a number, and reads it again, until the context ends.
func (u *user) run(ctx context.Context, in client.Client, object *corev1.ConfigMap) {
	tick := time.NewTicker(requestEvery)
	defer tick.Stop()
	for number := 1; ; number++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		text := strconv.Itoa(number)
		err := in.Patch(ctx, object.DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"number":%q}}`, text)))
		if ctx.Err() != nil {
			return
		}
		u.note(err)
		if err != nil {
			continue
		}
		read := &corev1.ConfigMap{}
		err = in.Get(ctx, client.ObjectKeyFromObject(object), read)
		if ctx.Err() != nil {
			return
		}
		if err == nil && read.Data["number"] != text {
			err = fmt.Errorf("it reads %s after it has written %s", read.Data["number"], text)
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
		return
	}
	u.counts.failed++
	if strings.Contains(err.Error(), "connection refused") {
		u.counts.refused++
	}
	if len(u.counts.errors) < failuresShown {
		u.counts.errors = append(u.counts.errors, fmt.Sprintf("%s %v", now.UTC().Format(time.TimeOnly), err))
	}
}

// take returns what was counted, and counts from 0.
func (u *user) take() counts {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.counts
	u.counts = counts{}
	return taken
}

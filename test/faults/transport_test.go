package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// plan is a fault of a run and the site where it is injected.
type plan struct {
	site  site
	fault fault
	// injected is set once the fault was injected. The lock of the line guards it.
	injected bool
}

func (p *plan) String() string { return fmt.Sprintf("%s/%s", p.site, p.fault.name) }

// line covers all clients of a resource-manager, over all its lives. It names and counts the calls and injects the
// faults.
type line struct {
	// rename replaces the parts of names that differ between runs of a scenario.
	rename *strings.Replacer
	// shorten removes other parts of object names that differ between runs. It may be nil.
	shorten func(string) string
	// plans are the faults of the run. They are empty for a run without a fault.
	plans []*plan
	// witness checks each call that writes before it is executed.
	witness func(call, []byte)

	mu sync.Mutex
	// open is set while the calls are part of the scenario.
	open   bool
	counts map[call]int
	sites  []site
	// interfered counts the changes by hand that faults have made.
	interfered int
}

// pending returns an objection until the changes by hand of all injected faults are made. Sure also includes the
// faults at calls that every run makes.
func (l *line) pending(sure bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	expected := 0
	for _, p := range l.plans {
		if p.fault.meanwhile != nil && (p.injected || sure && p.site.certain()) {
			expected++
		}
	}
	if l.interfered < expected {
		return []string{"no change was made by hand yet"}
	}
	return nil
}

// interfere makes the change by hand of a fault, and waits until the clients notice it.
func (l *line) interfere(next http.RoundTripper, fault *fault, applied *http.Request) error {
	request, err := fault.meanwhile(applied)
	if err != nil {
		return err
	}
	response, err := next.RoundTrip(request)
	if err != nil {
		return err
	}
	time.Sleep(noticed)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.interfered++
	return response.Body.Close()
}

// begin makes all further calls part of the scenario.
func (l *line) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.counts = true, map[call]int{}
}

// visited returns the sites of the scenario in the order of their calls.
func (l *line) visited() []site {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sites)
}

// injected reports whether the fault of a plan was injected.
func (l *line) injected(p *plan) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.injected
}

// enter records a call. It returns the fault if the call is its site.
func (l *line) enter(c call) *fault {
	c.group, c.namespace, c.name = l.rename.Replace(c.group), l.rename.Replace(c.namespace), l.rename.Replace(c.name)
	if l.shorten != nil {
		c.name = l.shorten(c.name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return nil
	}
	l.counts[c]++
	here := site{c, l.counts[c]}
	l.sites = append(l.sites, here)
	if !here.enumerated() {
		return nil
	}
	for _, p := range l.plans {
		if !p.injected && p.site == here {
			p.injected = true
			return &p.fault
		}
	}
	return nil
}

// life is the lifetime of one process of the resource-manager. After its end, no call of the process reaches an
// API server.
type life struct {
	*line
	ctx context.Context
	end context.CancelFunc
	// by distinguishes its calls from those of another resource-manager. It is empty if only one runs.
	by string
}

func (l *line) newLife(by string) *life {
	ctx, end := context.WithCancel(context.Background())
	return &life{l, ctx, end, by}
}

// of returns the same life for the clients of another API server. The name of the server distinguishes their
// calls.
func (l *life) of(server string) *life { return &life{l.line, l.ctx, l.end, server} }

// wrap inserts the line into a client, for rest.Config.Wrap.
func (l *life) wrap(next http.RoundTripper) http.RoundTripper {
	return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if l.ctx.Err() != nil {
			return nil, errCrashed
		}
		c := callOf(request.Method, request.URL)
		c.by = l.by
		fault := l.enter(c)
		if fault != nil && !fault.carriedOut {
			return l.inject(fault, request, nil)
		}
		if err := l.show(c, request); err != nil {
			return nil, err
		}
		if fault == nil {
			return l.send(next, request)
		}
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if fault.meanwhile != nil {
			if err := l.interfere(next, fault, request); err != nil {
				return nil, errors.Join(err, response.Body.Close())
			}
		}
		return l.inject(fault, request, response)
	})
}

// noticed is how long a response is delayed, so that the watches show a change made by hand first.
const noticed = 500 * time.Millisecond

// inject answers with the fault.
func (l *life) inject(fault *fault, request *http.Request, carriedOut *http.Response) (*http.Response, error) {
	if fault.crashes {
		l.end()
	}
	response, err := fault.answer(request, carriedOut)
	if err != nil && carriedOut != nil {
		return nil, errors.Join(err, carriedOut.Body.Close())
	}
	return response, err
}

// show passes a call to the witness.
func (l *life) show(c call, request *http.Request) error {
	if c.reads() || l.witness == nil {
		return nil
	}
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	l.witness(c, body)
	return nil
}

// send sends a request that is cancelled when the life ends.
func (l *life) send(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	stop := context.AfterFunc(l.ctx, cancel)
	release := func() { stop(); cancel() }
	response, err := next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		release()
		if l.ctx.Err() != nil {
			return nil, errCrashed
		}
		return nil, err
	}
	response.Body = &releasingBody{response.Body, release}
	return response, nil
}

// releasingBody calls a function when it is closed.
type releasingBody struct {
	io.ReadCloser
	release func()
}

// Close closes the body and calls the function.
func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

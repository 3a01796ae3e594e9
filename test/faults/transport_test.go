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

// plan is a fault of a run, and where it is injected.
type plan struct {
	site  site
	fault fault
	// injected says that the fault was injected. The lock of the line guards it.
	injected bool
}

func (p *plan) String() string { return fmt.Sprintf("%s/%s", p.site, p.fault.name) }

// line is all clients of a resource-manager, over all its lives: it names and counts what is called, and injects the fault.
type line struct {
	// rename replaces what differs between runs of a scenario.
	rename *strings.Replacer
	// shorten leaves out of the name of an object what differs between runs otherwise; nil for nothing.
	shorten func(string) string
	// plans are the faults of the run; none for a run without a fault.
	plans []*plan
	// witness looks at each call that writes before it is carried out.
	witness func(call, []byte)

	mu sync.Mutex
	// open says that the calls are part of the scenario.
	open   bool
	counts map[call]int
	sites  []site
	// interfered is how often someone has done by hand what a fault says.
	interfered int
}

// pending objects until somebody has done by hand what the fault says. Sure says that a call which is certain will come.
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
		return []string{"nobody has interfered yet"}
	}
	return nil
}

// interfere has somebody do by hand what a fault says, and waits until that is noticed.
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

// begin has the calls from now on be part of the scenario.
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

// enter notes a call, and returns the fault if this is where it belongs.
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

// life is the time of one process of the resource-manager. When it ends, nothing of the process reaches an API server any more.
type life struct {
	*line
	ctx context.Context
	end context.CancelFunc
	// by tells its calls from those of another resource-manager; empty if there is but one.
	by string
}

func (l *line) newLife(by string) *life {
	ctx, end := context.WithCancel(context.Background())
	return &life{l, ctx, end, by}
}

// of returns the same life for the clients of another API server, by which calls are distinguished.
func (l *life) of(server string) *life { return &life{l.line, l.ctx, l.end, server} }

// wrap puts the line under a client, for rest.Config.Wrap.
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

// noticed is how long an answer is held back, so that the watches show before it what was done by hand.
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

// show has the witness look at a call.
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

// send sends a request that ends with the life.
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

// Close closes what is read.
func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

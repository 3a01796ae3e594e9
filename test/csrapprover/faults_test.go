package csrapprover

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestNothingIsDecidedWithoutFacts checks that a missing or invalid answer of the API server leads to no decision, and that the next
// attempt decides.
func TestNothingIsDecidedWithoutFacts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	node, machine := f.joined("node")
	answering := func(path string, status int, contentType, body string) {
		a.intercept(func(request *http.Request) (*http.Response, error) {
			if !strings.Contains(request.URL.Path, path) {
				return nil, nil
			}
			return &http.Response{
				StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), Request: request,
			}, nil
		})
	}
	const notServed = "the source cluster does not serve Machines (machines.machine.sapcloud.io), but controllers.csrApprover.machineNamespace is " +
		`"` + machineNamespace + `": install the CustomResourceDefinition of Machines, or remove the field`
	for name, test := range map[string]struct {
		demand demand
		spoil  func()
		want   string
		end    string
	}{
		"Node":          {f.serving(node), func() { a.failing("/nodes/") }, "connection broken", approvedServing},
		"Node, 404":     {f.serving(node), func() { answering("/nodes/", 404, "text/plain", "404 page not found") }, "read Node", approvedServing},
		"Node, 500":     {f.serving(node), func() { answering("/nodes/", 500, "text/plain", "oops") }, "read Node", approvedServing},
		"Machines":      {f.serving(node), func() { a.failing("/machines") }, "connection broken", approvedServing},
		"Machines, 404": {f.serving(node), func() { answering("/machines", 404, "text/plain", "404 page not found") }, notServed, approvedServing},
		"Machines, no list": {f.serving(node), func() {
			answering("/machines", 200, "application/json", `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`)
		}, "the response is not a list", approvedServing},
		"Machine":      {f.renewal(machine), func() { a.failing("/machines/") }, "connection broken", approvedClient},
		"Machine, 404": {f.renewal(machine), func() { answering("/machines/", 404, "text/plain", "404 page not found") }, notServed, approvedClient},
		"approval":     {f.renewal(machine), func() { a.failing("/approval") }, "update the approval", approvedClient},
	} {
		t.Run(name, func(t *testing.T) {
			request := f.request(test.demand)
			test.spoil()
			if _, err := a.try(request); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), request) {
				t.Errorf("the error is %v", err)
			}
			a.intercept(nil)
			if got := f.decision(request); got != "" {
				t.Errorf("decided without the facts: %s", got)
			}
			if got := a.decide(request); got != test.end {
				t.Error(got)
			}
		})
	}
}

// frozen is a response body that returns no more data once its ice channel is closed.
type frozen struct {
	io.ReadCloser
	ice    <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (f *frozen) Read(data []byte) (int, error) {
	n, err := f.ReadCloser.Read(data)
	select {
	case <-f.ice:
		<-f.closed
		return 0, io.EOF
	default:
		return n, err
	}
}

func (f *frozen) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.ReadCloser.Close()
}

// TestStaleViewDecidesNothing checks that the decisions are correct although the watch of Machines is behind.
func TestStaleViewDecidesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	// The view has one Machine each for "moved", "gone" and "kept", and no Machine for "new".
	movedNode, movedMachine := f.joined("moved")
	goneNode, goneMachine := f.joined("gone")
	keptNode, _ := f.joined("kept")
	newNode := f.node("new")
	ice := make(chan struct{})
	requests := &kit.Requests{}
	config := f.approverConfig(requests)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Get("watch") != "" {
				response.Body = &frozen{ReadCloser: response.Body, ice: ice, closed: make(chan struct{})}
			}
			return response, err
		})
	})
	a.Machines = f.newMachines(config)
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Machines.Start(ctx) }()
	f.Cleanup(func() { cancel(); <-done })
	listed := func() bool {
		for _, request := range requests.Single() {
			if strings.HasSuffix(request.Path, "/machines") {
				return true
			}
		}
		return false
	}
	// Once the view is filled, no search is needed.
	kit.EventuallyTrue(t, "the view is used", func() bool {
		requests.Forget()
		return a.decide(f.request(f.serving(keptNode))) == approvedServing && !listed()
	})
	close(ice)
	for _, name := range []string{movedMachine, goneMachine} {
		machine := f.machineNamed(name)
		kit.Must(t, f.client.Delete(f.ctx, machine))
	}
	f.machine(f.name("moved-to"), movedNode)
	f.machine(f.name("new-machine"), newNode)
	a.wantDecision(f.serving(keptNode), approvedServing, "")
	a.wantDecision(f.serving(movedNode), approvedServing, "")
	a.wantDecision(f.serving(newNode), approvedServing, "")
	a.wantDecision(f.serving(goneNode), deniedServing, "has 0 Machines")
	if !listed() {
		t.Error("no search was sent, so the view was not behind")
	}
}

// TestDecidedMeanwhile checks that the decision of another client between the read and the write is kept.
func TestDecidedMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newApprover(true)
	_, machine := f.joined("node")
	for name, change := range map[string]func(*certificatesv1.CertificateSigningRequest){
		"Denied ByHand: no": func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
				Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "ByHand", Message: "no",
			}}
			kit.Must(t, f.client.SubResource("approval").Update(f.ctx, csr))
		},
		approvedClient: func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Labels = map[string]string{"a": "b"}
			kit.Must(t, f.client.Update(f.ctx, csr))
		},
	} {
		request := f.request(f.renewal(machine))
		a.intercept(func(sent *http.Request) (*http.Response, error) {
			if strings.HasSuffix(sent.URL.Path, "/approval") {
				a.intercept(nil)
				change(f.read(request))
			}
			return nil, nil
		})
		result, err := a.try(request)
		if err != nil || result.RequeueAfter == 0 {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if got := a.decide(request); got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	}
	request := f.request(f.renewal(machine))
	a.intercept(func(sent *http.Request) (*http.Response, error) {
		if strings.HasSuffix(sent.URL.Path, "/approval") {
			kit.Must(t, f.client.Delete(f.ctx, f.read(request)))
		}
		return nil, nil
	})
	if result, err := a.try(request); err != nil || !result.IsZero() {
		t.Errorf("the result for a request that was deleted meanwhile is %+v, %v", result, err)
	}
}

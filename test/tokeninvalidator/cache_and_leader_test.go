package tokeninvalidator

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-k8s/trellis/pkg/tokeninvalidator"
	"github.com/trellis-k8s/trellis/test/kit"
)

// received records the answers of the API server.
type received struct {
	// before is called before each request, if it is set.
	before func(*http.Request)

	mu      sync.Mutex
	bytes   bytes.Buffer
	patched []int // status codes
}

func (r *received) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes.Write(data)
}

func (r *received) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.bytes.Bytes(), []byte(text))
}

// wrap records the bytes of all answers, including those of watches.
func (r *received) wrap(next http.RoundTripper) http.RoundTripper {
	return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
		request = request.Clone(request.Context())
		request.Header.Set("Accept-Encoding", "identity")
		if r.before != nil {
			r.before(request)
		}
		response, err := next.RoundTrip(request)
		if err == nil {
			r.note(request, response.StatusCode)
			response.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(response.Body, r), response.Body}
		}
		return response, err
	})
}

func (r *received) note(request *http.Request, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.Method == http.MethodPatch {
		r.patched = append(r.patched, status)
	}
}

func (r *received) statuses() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.patched)
}

// run runs the controller in this process. It returns the recorders of its requests and of the answers.
func (f *fixture) run(before func(*http.Request), tune ...func(*manager.Options)) (*kit.Requests, *received) {
	f.Helper()
	requests, answers := &kit.Requests{}, &received{before: before}
	config := rest.CopyConfig(f.config)
	config.Wrap(requests.Wrap)
	config.Wrap(answers.wrap)
	options := kit.ManagerOptions(f.client.Scheme())
	for _, change := range tune {
		change(&options)
	}
	mgr, err := manager.New(config, options)
	kit.Must(f, err)
	kit.Must(f, tokeninvalidator.NewReconciler(mgr.GetClient(), mgr.GetEventRecorder("resource-manager"), tokeninvalidator.Metrics{},
		tokeninvalidator.Options{ConcurrentSyncs: 1}).AddToManager(f.ctx, mgr, kit.NewCache(f, mgr, tokeninvalidator.CacheOptions(), f.namespace)))
	kit.Run(f, mgr)
	return requests, answers
}

// TestMetadataAlone checks that the controller never receives a token, and that it requests no more than it needs.
func TestMetadataAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	token := f.generated("a-1")
	kit.Must(t, f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: f.meta("other-secret")}))
	ended := f.pod("ended-pod", mounting("a-1"))
	ended.Status.Phase = corev1.PodSucceeded
	kit.Must(t, f.client.Status().Update(f.ctx, ended))
	f.pod("other-pod", mounting("other-secret"))

	requests, answers := f.run(nil)
	f.eventuallyInvalid("a-1")
	f.change(account, func() { account.AutomountServiceAccountToken = nil })
	again := f.eventuallyRestored("a-1")
	f.change(account, func() { account.AutomountServiceAccountToken = ptr.To(false) })
	f.eventuallyInvalid("a-1")
	for what, text := range map[string]string{
		"a token": token, "a token in base64": base64.StdEncoding.EncodeToString([]byte(token)), "the restored token": again,
		"the restored token in base64": base64.StdEncoding.EncodeToString([]byte(again)), "a Pod that has ended": "ended-pod",
	} {
		if answers.has(text) {
			t.Errorf("the controller received %s", what)
		}
	}
	for _, text := range []string{"a-1", "other-pod", string(account.UID)} {
		if !answers.has(text) {
			t.Errorf("the controller has not received %q, so the test does not cover its requests", text)
		}
	}
	writes := slices.DeleteFunc(requests.All(), func(request kit.Request) bool { return request.Method == http.MethodGet })
	if patches := slices.DeleteFunc(slices.Clone(writes), func(request kit.Request) bool { return request.Method != http.MethodPatch }); len(patches) < 3 ||
		slices.ContainsFunc(patches, func(request kit.Request) bool {
			return !strings.HasSuffix(request.Path, "/secrets/a-1") && !strings.Contains(request.Path, "/events")
		}) {
		t.Errorf("the writes are %v", writes)
	}
	if slices.ContainsFunc(requests.All(), func(request kit.Request) bool {
		return request.Method == http.MethodGet && strings.Contains(request.Path, "/secrets/")
	}) {
		t.Error("the controller reads single Secrets")
	}
}

// TestLeaderAlone checks that a replica that does not lead neither lists nor watches anything for the controller.
func TestLeaderAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	f.generated("a-1")
	lease := &coordinationv1.Lease{ObjectMeta: f.meta("lease"), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("somebody-else"), LeaseDurationSeconds: ptr.To[int32](3600),
		AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
	}}
	kit.Must(t, f.client.Create(f.ctx, lease))
	requests, _ := f.run(nil, func(options *manager.Options) {
		options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, "lease", f.namespace
		options.RetryPeriod = ptr.To(200 * time.Millisecond)
	})
	kit.EventuallyTrue(t, "the replica has tried several times to become the leader", func() bool {
		tries := slices.DeleteFunc(requests.All(), func(request kit.Request) bool { return !strings.HasSuffix(request.Path, "/leases/lease") })
		return len(tries) > 3
	})
	for _, kind := range []string{"secrets", "serviceaccounts", "pods"} {
		if requests.Watched("/" + kind) {
			t.Errorf("the replica watches %s although it does not lead", kind)
		}
	}
	kit.Must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(lease), lease))
	lease.Spec.HolderIdentity = ptr.To("")
	kit.Must(t, f.client.Update(f.ctx, lease))
	f.eventuallyInvalid("a-1")
}

// TestSecretRecreatedMeanwhile checks that the decision about a Secret is not applied to a new Secret of the same name.
func TestSecretRecreatedMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account("unwanted", ptr.To(false), nil)
	f.account("wanted", nil, nil)
	f.token("s", "unwanted")
	f.generated("s")
	var once sync.Once
	_, answers := f.run(func(request *http.Request) {
		if request.Method == http.MethodPatch {
			once.Do(func() {
				kit.Must(t, f.client.Delete(f.ctx, f.secret("s")))
				f.token("s", "wanted")
			})
		}
	})
	kit.EventuallyTrue(t, "the controller has tried twice", func() bool { return len(answers.statuses()) > 1 })
	f.eventuallyMarked("s")
	statuses := answers.statuses()
	if statuses[0] != http.StatusUnprocessableEntity || slices.Max(statuses[1:]) >= 300 {
		t.Errorf("the status codes of the patches are %v", statuses)
	}
	if _, found := f.secret("s").Labels[consider]; found {
		t.Error("the new Secret is labelled")
	}
	f.eventuallyAccepted(f.generated("s"))
	if events := f.events(f.secret("s"), "SecretChangeRefused"); len(events) > 0 {
		t.Errorf("unexpected Events: %v", events)
	}
}

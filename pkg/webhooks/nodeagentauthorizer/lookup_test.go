package nodeagentauthorizer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCachesAnswer checks that cached objects are not read from the API server.
func TestCachesAnswer(t *testing.T) {
	s := newSetup(t, everything()...)
	for range 10 {
		for _, call := range [][3]string{{"get", "nodes", "n-own"}, {"get", "secrets", "osc-own"}, {"get", "secrets", "file-own"}} {
			if status := s.review(t.Context(), call[0], call[1], secretNamespace, call[2]); !status.Allowed {
				t.Errorf("%v: %+v", call, status)
			}
		}
	}
	// The content of the configuration is read once.
	if s.live.count("") != 1 || s.live.count("body of Secret osc-own") != 1 {
		t.Errorf("the API server got the requests %v", s.live.asked)
	}
}

// TestDenialsAreConfirmed checks that an object that is missing in the cache is read from the API server before a denial, and
// that the result is reused for a second.
func TestDenialsAreConfirmed(t *testing.T) {
	s := newSetup(t)
	for range 50 {
		if status := s.review(t.Context(), "get", "nodes", "", "n-own"); !status.Allowed {
			t.Fatalf("the own Node: %+v", status)
		}
		if status := s.review(t.Context(), "get", "nodes", "", "n-foreign"); !status.Denied {
			t.Fatalf("a foreign Node: %+v", status)
		}
		if status := s.review(t.Context(), "get", "secrets", secretNamespace, "file-own"); !status.Allowed {
			t.Fatalf("a Secret: %+v", status)
		}
	}
	for what, want := range map[string]int{"Machine own": 1, "Node n-own": 1, "Secret osc-own": 1, "body of Secret osc-own": 1} {
		if got := s.live.asked[what]; got != want {
			t.Errorf("%s was read %d times, want %d", what, got, want)
		}
	}
	s.clock.SetTime(s.clock.Now().Add(rememberFor + time.Millisecond))
	delete(s.live.objects, "Node n-own")
	if status := s.review(t.Context(), "get", "nodes", "", "n-own"); !status.Denied || status.Reason != `no node for "own" found` {
		t.Errorf("a second later, without the Node: %+v", status)
	}
}

// TestThousandAtOnce checks that many concurrent requests are answered, and that denials cost one read of each object.
func TestThousandAtOnce(t *testing.T) {
	s := newSetup(t, everything()...)
	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() {
			switch i % 4 {
			case 0:
				if status := s.review(t.Context(), "get", "nodes", "", "n-own"); !status.Allowed {
					t.Errorf("the own Node: %+v", status)
				}
			case 1:
				if status := s.review(t.Context(), "get", "nodes", "", "n-foreign"); !status.Denied {
					t.Errorf("a foreign Node: %+v", status)
				}
			case 2:
				if status := s.review(t.Context(), "get", "secrets", secretNamespace, fmt.Sprintf("foreign-%d", i)); !status.Denied {
					t.Errorf("a foreign Secret: %+v", status)
				}
			case 3:
				if code, _ := s.post(t.Context(), "{"); code != 400 {
					t.Errorf("status %d for a body that is not a review", code)
				}
			}
		})
	}
	group.Wait()
	for _, what := range []string{"Machine", "Node", "Secret", "body of Secret"} {
		if got := s.live.count(what); got != 1 {
			t.Errorf("a %s was read %d times", what, got)
		}
	}
}

// TestReadsOfANodeAgentAreLimited checks that the number of reads that each node agent can cause is limited.
func TestReadsOfANodeAgentAreLimited(t *testing.T) {
	s := newSetup(t, everything()...)
	var denied, failed int
	ask := func(name string) {
		switch status := s.review(t.Context(), "get", "pods", "default", name); {
		case status.Denied:
			denied++
		case strings.HasPrefix(status.EvaluationError, "429 ") && !status.Allowed:
			failed++
		default:
			t.Fatalf("%+v", status)
		}
	}
	for i := range 300 {
		ask(fmt.Sprintf("pod-%d", i))
	}
	if denied != readsAtOnce || failed != 300-readsAtOnce || s.live.count("PodList") != readsAtOnce {
		t.Errorf("%d denied, %d failed, %d lists", denied, failed, s.live.count("PodList"))
	}
	// A recently denied request is denied again without a read.
	ask("pod-0")
	if denied != readsAtOnce+1 {
		t.Error("a request with a known answer is not denied")
	}
	other, _ := s.handler.(*handler)
	if (&view{lookup: other.lookup, agent: "other"}).limiter().TryAccept() != true {
		t.Error("another node agent is affected")
	}
	s.clock.SetTime(s.clock.Now().Add(time.Second))
	before := s.live.count("PodList")
	for i := range 300 {
		ask(fmt.Sprintf("later-%d", i))
	}
	if got := s.live.count("PodList") - before; got != readsPerSecond {
		t.Errorf("%d lists in the next second", got)
	}
}

// TestOwnPodsAndRequests checks that a positive answer is not reused, because a Pod with the same name might be on another
// Node.
func TestOwnPodsAndRequests(t *testing.T) {
	s := newSetup(t, everything()...)
	for range 3 {
		if status := s.review(t.Context(), "delete", "pods", "default", "pod-own"); !status.Allowed {
			t.Errorf("the own Pod: %+v", status)
		}
		if status := s.review(t.Context(), "get", "certificatesigningrequests", "", "csr-own"); !status.Allowed {
			t.Errorf("the own CertificateSigningRequest: %+v", status)
		}
	}
	if status := s.review(t.Context(), "get", "certificatesigningrequests", "", "csr-foreign"); !status.Denied {
		t.Errorf("a foreign CertificateSigningRequest: %+v", status)
	}
	if s.live.count("PodList") != 3 || s.live.count("CertificateSigningRequest csr-own") != 3 {
		t.Errorf("the API server got the requests %v", s.live.asked)
	}
}

// TestCachesThatFail checks that the API server is read if the cache fails, and that there is an error if that fails, too.
func TestCachesThatFail(t *testing.T) {
	s := newSetup(t, everything()...)
	s.cache.before = func(context.Context) error { return errors.New("not started") }
	if status := s.review(t.Context(), "get", "nodes", "", "n-own"); !status.Allowed {
		t.Errorf("%+v", status)
	}
	s.clock.SetTime(s.clock.Now().Add(2 * rememberFor))
	s.live.before = func(context.Context) error { return errors.New("no connection") }
	want := authorizationv1.SubjectAccessReviewStatus{EvaluationError: "500 read Machine own: no connection"}
	if status := s.review(t.Context(), "get", "nodes", "", "n-own"); status != want {
		t.Errorf("%+v", status)
	}
	s.live.before = nil // errors are not remembered
	if status := s.review(t.Context(), "get", "nodes", "", "n-own"); !status.Allowed {
		t.Errorf("%+v", status)
	}
}

// TestReadsThatHang checks that reads end in time, and that a shared read continues when one of the callers leaves.
func TestReadsThatHang(t *testing.T) {
	s := newSetup(t)
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	s.live.before = hangs
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if status := s.review(short, "get", "nodes", "", "n-own"); !strings.HasPrefix(status.EvaluationError, "504 ") {
		t.Errorf("%+v", status)
	}

	asked, goOn := make(chan struct{}), make(chan struct{})
	s.live.before = func(ctx context.Context) error {
		close(asked)
		s.live.before = nil
		<-goOn
		return ctx.Err()
	}
	leaving, leave := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for i, ctx := range []context.Context{leaving, t.Context()} {
		if i == 1 {
			<-asked
		}
		group.Go(func() {
			if status := s.review(ctx, "get", "nodes", "", "n-own"); !status.Allowed {
				t.Errorf("after another caller left: %+v", status)
			}
		})
	}
	leave()
	close(goOn)
	group.Wait()
}

// TestPanics checks that a panic fails only its own request.
func TestPanics(t *testing.T) {
	s := newSetup(t)
	s.live.before = func(context.Context) error { panic("top-secret") }
	if status := s.review(t.Context(), "get", "nodes", "", "n-own"); status.EvaluationError != "500 internal error" || status.Allowed || status.Denied {
		t.Errorf("%+v", status)
	}
	s.live.before = nil
	if status := s.review(t.Context(), "get", "nodes", "", "n-own"); !status.Allowed {
		t.Errorf("%+v", status)
	}
	if !strings.Contains(s.log(), "panicked") {
		t.Errorf("the log is %s", s.log())
	}
}

// TestConfigurationIsReadOncePerVersion tests readable and unreadable configurations.
func TestConfigurationIsReadOncePerVersion(t *testing.T) {
	s := newSetup(t, everything()...)
	for _, data := range []string{"top-secret: [", "spec: {files: [{content: {secretRef: {name: file-own}}}]}"} {
		secret, isSecret := s.live.objects["Secret osc-own"].DeepCopyObject().(*corev1.Secret)
		if !isSecret {
			t.Fatal("the Secret does not exist")
		}
		secret.Data[configurationKey] = []byte(data)
		secret.ResourceVersion += "0"
		s.live.objects["Secret osc-own"], s.cache.objects["Secret osc-own"] = secret, secret
		s.clock.SetTime(s.clock.Now().Add(2 * rememberFor))
		before := s.live.count("body of Secret")
		for range 5 {
			status := s.review(t.Context(), "get", "secrets", secretNamespace, "file-own")
			if strings.HasPrefix(data, "top") == status.Allowed || strings.Contains(status.EvaluationError, "top-secret") {
				t.Errorf("%s: %+v", data, status)
			}
			s.clock.SetTime(s.clock.Now().Add(2 * rememberFor))
		}
		if got := s.live.count("body of Secret") - before; got != 1 {
			t.Errorf("%s was read %d times", data, got)
		}
	}
	if strings.Contains(s.log(), "top-secret") {
		t.Error("the log contains data of a Secret")
	}
}

// TestMetadataThatIsBehind checks that a configuration is read once per second while the cache shows an older version than the
// one that was read.
func TestMetadataThatIsBehind(t *testing.T) {
	s := newSetup(t, everything()...)
	older := s.cache.objects["Secret osc-own"].DeepCopyObject().(client.Object) //nolint:errcheck,forcetypeassert // it is one
	older.SetResourceVersion("6")
	s.cache.objects["Secret osc-own"] = older
	for seconds := range 3 {
		for range 5 {
			if status := s.review(t.Context(), "get", "secrets", secretNamespace, "file-own"); !status.Allowed {
				t.Errorf("%+v", status)
			}
		}
		if got := s.live.count("body of Secret"); got != seconds+1 {
			t.Errorf("in second %d the configuration was read %d times", seconds, got)
		}
		s.clock.SetTime(s.clock.Now().Add(rememberFor))
	}
}

// TestReduced checks that caches keep the fields that are read, and nothing else.
func TestReduced(t *testing.T) {
	machine := newMachine()
	machine.SetName("a")
	machine.SetNamespace("b")
	machine.SetLabels(map[string]string{labelNode: "n", "other": "x"})
	machine.SetAnnotations(map[string]string{"other": "x"})
	machine.Object["status"] = map[string]any{"other": "x"}
	_ = unstructured.SetNestedStringMap(machine.Object, map[string]string{labelSecret: "s", "other": "x"}, machineLabels...)
	data, err := reduceMachine(machine).MarshalJSON()
	const want = `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"labels":{"node":"n"},"name":"a","namespace":"b"},` +
		`"spec":{"nodeTemplate":{"metadata":{"labels":{"worker.gardener.cloud/gardener-node-agent-secret-name":"s"}}}}}`
	if err != nil || strings.TrimSpace(string(data)) != want {
		t.Errorf("%s, %v", data, err)
	}
	// An object without the form of a Machine has no secret.
	machine.Object["spec"] = "text"
	if name := secretOfMachine(machine); name != "" {
		t.Errorf("the secret is %q", name)
	}

	node := newNode()
	node.Name, node.ResourceVersion = "a", "1"
	node.Labels = map[string]string{labelSecret: "s", corev1.LabelHostname: "h", "other": "x"}
	node.Annotations = map[string]string{"other": "x"}
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	if metadata := reduceMetadata(node); len(metadata.Labels) != 2 || metadata.Annotations != nil || metadata.ManagedFields != nil {
		t.Errorf("%+v", metadata)
	}
}

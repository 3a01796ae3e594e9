package tokeninvalidator

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// sent returns "<verb> <URI>" of what a resource-manager sent about a namespace since a time, by the audit log of the API server.
func (f *fixture) sent(since time.Time) []string {
	f.Helper()
	file, err := os.Open(shared.Options.AuditLog)
	kit.Must(f, err)
	defer file.Close()
	var requests []string
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var event struct {
			Verb, UserAgent, RequestURI string
			RequestReceivedTimestamp    time.Time
		}
		if json.Unmarshal(scanner.Bytes(), &event) != nil {
			continue // the last line is being written
		}
		if strings.HasPrefix(event.UserAgent, "resource-manager/") && strings.Contains(event.RequestURI, "/namespaces/"+f.namespace+"/") &&
			!event.RequestReceivedTimestamp.Before(since) {
			requests = append(requests, event.Verb+" "+event.RequestURI)
		}
	}
	return requests
}

// TestRestart: what changed while the resource-manager was away is seen when it is back, and if nothing changed it writes nothing.
func TestRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	becomesWanted, becomesUnwanted := f.account("becomes-wanted", ptr.To(false), nil), f.account("becomes-unwanted", nil, nil)
	f.account("rests", ptr.To(false), nil)
	for _, name := range []string{"becomes-wanted", "becomes-unwanted", "rests"} {
		f.token(name, name)
		f.generated(name)
	}
	p := f.start()
	f.eventuallyInvalid("becomes-wanted")
	f.eventuallyInvalid("rests")
	f.eventuallyMarked("becomes-unwanted")
	p.Stop()

	f.change(becomesWanted, func() { becomesWanted.AutomountServiceAccountToken = nil })
	f.change(becomesUnwanted, func() { becomesUnwanted.AutomountServiceAccountToken = ptr.To(false) })
	f.token("is-new", "rests")
	rests := f.secret("rests").ResourceVersion
	p = f.start()
	f.eventuallyRestored("becomes-wanted")
	f.eventuallyInvalid("becomes-unwanted")
	f.eventuallyInvalid("is-new")
	if f.secret("rests").ResourceVersion != rests {
		t.Error("a Secret of which nothing had changed was written")
	}
	p.Stop()

	again := time.Now()
	p = f.start()
	f.token("last", "rests")
	f.eventuallyInvalid("last")
	f.eventuallyTold(f.secret("last"), "Normal", "TokenInvalidated")
	p.Stop()
	var others []string
	for _, request := range f.sent(again) {
		verb, uri, _ := strings.Cut(request, " ")
		if verb != "list" && verb != "watch" && !strings.HasSuffix(strings.Split(uri, "?")[0], "/secrets/last") && !strings.HasSuffix(uri, "/events") {
			others = append(others, request)
		}
	}
	if len(others) > 0 {
		t.Errorf("after a restart with nothing changed, it sends %q", others)
	}
}

// TestNotEnabled: the configuration enables it; otherwise nothing of it is there, and nothing is watched for it.
func TestNotEnabled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	f.generated("a-1")
	watches := func(since time.Time) []string {
		return slices.DeleteFunc(f.sent(since), func(request string) bool {
			return !strings.HasPrefix(request, "watch ") || !strings.Contains(request, "/pods?") && !strings.Contains(request, "/serviceaccounts?") &&
				!strings.Contains(request, "service-account-token")
		})
	}
	started := time.Now()
	p := kit.StartManager(t, shared.Get(t).Kubeconfig(), []string{f.namespace}, "")
	kit.EventuallyTrue(t, "its controllers run", func() bool { return strings.Count(p.Written.String(), "Starting workers") == 2 })
	if watches := watches(started); len(watches) > 0 {
		t.Errorf("without being enabled, it watches %q", watches)
	}
	if _, body := p.Get(p.Metrics, "/metrics"); strings.Contains(body, "resource_manager_static_tokens") || len(f.secret("a-1").Labels) != 0 {
		t.Error("without being enabled, it works")
	}
	p.Stop()

	started = time.Now()
	p = f.start()
	f.eventuallyInvalid("a-1")
	kit.Eventually(t, "it watches three kinds", func() string {
		watches := watches(started)
		if len(watches) == 3 {
			return ""
		}
		return "it watches " + strings.Join(watches, ", ")
	})
	if log := p.Written.String(); !strings.Contains(log, "also enable webhooks.tokenInvalidator") {
		t.Error("the log does not tell that it needs the webhook, or tells that it is missing")
	}
}

// TestManagedResource: labels and token of a Secret that a ManagedResource deploys together with its ServiceAccount are left as they
// are by the controller of ManagedResources.
func TestManagedResource(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	manifests := `
apiVersion: v1
kind: ServiceAccount
metadata: {name: a, namespace: ` + f.namespace + `}
automountServiceAccountToken: false
---
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: a-1, namespace: ` + f.namespace + `, labels: {mine: "1"}, annotations: {kubernetes.io/service-account.name: a}}
`
	kit.Must(t, f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: f.meta("manifests"), StringData: map[string]string{"objects.yaml": manifests}}))
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: f.meta("set"), Spec: resourcesv1alpha1.ManagedResourceSpec{
		SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: "manifests"}},
	}}
	kit.Must(t, f.client.Create(f.ctx, mr))
	p := f.start()
	kit.EventuallyTrue(t, "the Secret is there", func() bool {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
		kit.Must(t, f.client.List(f.ctx, list))
		return slices.ContainsFunc(list.Items, func(one metav1.PartialObjectMetadata) bool {
			return one.Namespace == f.namespace && one.Name == "a-1"
		})
	})
	f.eventuallyInvalid("a-1")

	// It is changed and applied anew, and everything is as it was.
	manifests = strings.Replace(manifests, `mine: "1"`, `mine: "2"`, 1)
	secret := f.secret("manifests")
	kit.Change(t, f.client, secret, func() { secret.Data["objects.yaml"] = []byte(manifests) })
	kit.EventuallyTrue(t, "the change is applied", func() bool { return f.secret("a-1").Labels["mine"] == "2" })
	f.eventuallyInvalid("a-1")
	wantMetric(p, "static_tokens_invalidated_total 1")
	_, body := p.Get(p.Metrics, "/metrics")
	for line := range strings.Lines(body) {
		if strings.Contains(line, `drift_detected_total{group="",kind="Secret"`) {
			t.Errorf("the labels or the token are taken for drift: %s", line)
		}
	}
}

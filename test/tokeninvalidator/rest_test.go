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

// sent returns the requests of a resource-manager for a namespace since a time as "<verb> <URI>", by the audit log of the API server.
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
			continue // the last line is incomplete
		}
		if strings.HasPrefix(event.UserAgent, "resource-manager/") && strings.Contains(event.RequestURI, "/namespaces/"+f.namespace+"/") &&
			!event.RequestReceivedTimestamp.Before(since) {
			requests = append(requests, event.Verb+" "+event.RequestURI)
		}
	}
	return requests
}

// TestRestart checks that a resource-manager observes the changes that happened while it did not run. Without changes, it writes nothing.
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
		t.Error("an unchanged Secret was written")
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
		t.Errorf("after a restart without changes, the resource-manager sent %q", others)
	}
}

// TestNotEnabled checks that the configuration enables the token invalidator. Otherwise it has no metrics and no watches.
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
	kit.EventuallyTrue(t, "the other controllers run", func() bool { return strings.Count(p.Written.String(), "Starting workers") == 2 })
	if watches := watches(started); len(watches) > 0 {
		t.Errorf("the disabled token invalidator watches %q", watches)
	}
	if _, body := p.Get(p.Metrics, "/metrics"); strings.Contains(body, "resource_manager_static_tokens") || len(f.secret("a-1").Labels) != 0 {
		t.Error("the disabled token invalidator has metrics or changed the Secret")
	}
	p.Stop()

	started = time.Now()
	p = f.start()
	f.eventuallyInvalid("a-1")
	kit.Eventually(t, "the token invalidator watches three kinds", func() string {
		watches := watches(started)
		if len(watches) == 3 {
			return ""
		}
		return "the watches are " + strings.Join(watches, ", ")
	})
	if log := p.Written.String(); !strings.Contains(log, "also enable webhooks.tokenInvalidator") {
		t.Error("the log does not mention that the webhook has to be enabled too")
	}
}

// TestManagedResource checks that the ManagedResource controller does not change labels and token of a Secret that a ManagedResource
// deploys together with its ServiceAccount.
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
	kit.EventuallyTrue(t, "the Secret exists", func() bool {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
		kit.Must(t, f.client.List(f.ctx, list))
		return slices.ContainsFunc(list.Items, func(one metav1.PartialObjectMetadata) bool {
			return one.Namespace == f.namespace && one.Name == "a-1"
		})
	})
	f.eventuallyInvalid("a-1")

	// The manifest is changed and applied again. The labels and the token are unchanged.
	manifests = strings.Replace(manifests, `mine: "1"`, `mine: "2"`, 1)
	secret := f.secret("manifests")
	kit.Change(t, f.client, secret, func() { secret.Data["objects.yaml"] = []byte(manifests) })
	kit.EventuallyTrue(t, "the change is applied", func() bool { return f.secret("a-1").Labels["mine"] == "2" })
	f.eventuallyInvalid("a-1")
	wantMetric(p, "static_tokens_invalidated_total 1")
	_, body := p.Get(p.Metrics, "/metrics")
	for line := range strings.Lines(body) {
		if strings.Contains(line, `drift_detected_total{group="",kind="Secret"`) {
			t.Errorf("the labels or the token are reported as drift: %s", line)
		}
	}
}

package integration

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// allowing returns the manifest of a Deployment that allows an invalid update to replace it.
func (f *fixture) allowing(selector, more string) string {
	return strings.Replace(strings.ReplaceAll(f.web(""), "app: web", "app: "+selector), "metadata:\n  name",
		"metadata:\n  annotations: {resources.gardener.cloud/delete-on-invalid-update: \"true\""+more+"}\n  name", 1)
}

// TestContractPropagationOnInvalidUpdate checks the propagation policy of the deletion.
func TestContractPropagationOnInvalidUpdate(t *testing.T) {
	for _, policy := range []string{"", "Background", "Foreground", "Orphan"} {
		t.Run(policy, func(t *testing.T) {
			f := newFixture(t)
			annotation := ""
			if policy != "" {
				annotation = ", resources.gardener.cloud/deletion-propagation-on-invalid-update: " + policy
			}
			f.manage("set", f.allowing("web", annotation))
			f.reconcileOK("set")
			bodies := f.keepBodies()
			f.secret("set", "objects.yaml", f.allowing("other", annotation))
			f.reconcileOnce("set")
			deletions := bodies.of(http.MethodDelete)
			if len(deletions) != 1 {
				t.Fatalf("the deletions are %v", deletions)
			}
			if sent := strings.Contains(deletions[0].body, "propagationPolicy"); sent != (policy != "") {
				t.Errorf("the body of the deletion is %s", deletions[0].body)
			}
			wantContains(t, deletions[0].body, policy)
		})
	}
}

// TestInvalidPropagationIsReportedWhenUsed: the policy concerns only the deletion of an object, so an invalid one
// does not block creations and updates.
func TestInvalidPropagationIsReportedWhenUsed(t *testing.T) {
	f := newFixture(t)
	const wrong = ", resources.gardener.cloud/deletion-propagation-on-invalid-update: Sideways"
	f.manage("set", f.allowing("web", wrong))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.allowing("web", wrong+", new: change"))
	f.reconcileOK("set")
	uid := f.liveDeployment().UID
	if f.liveDeployment().Annotations["new"] != "change" {
		t.Error("the object was not updated")
	}
	f.secret("set", "objects.yaml", f.allowing("other", wrong))
	mr, result, err := f.reconcile("set")
	wantContains(t, applied(mr).Message, "invalid deletion propagation policy", "Sideways", "use Background, Foreground or Orphan", "field is immutable")
	wantRetry(t, false, result, err)
	if f.liveDeployment().UID != uid {
		t.Error("the Deployment was replaced")
	}
}

// TestContractInvalidButNotReplaced: invalid creations do not delete an object, nor do invalid updates of objects
// whose manifest does not allow it.
func TestContractInvalidButNotReplaced(t *testing.T) {
	for name, test := range map[string]struct{ before, after func(f *fixture) string }{
		"a creation": {
			func(f *fixture) string { return f.configMap("beside", "1") },
			func(f *fixture) string {
				wrong := strings.Replace(f.allowing("web", ""), "matchLabels: {app: web}", "matchLabels: {app: wrong}", 1)
				return f.configMap("beside", "1") + "---\n" + wrong
			},
		},
		"a ConfigMap that is wrong in another way": {
			func(f *fixture) string { return f.configMap("one", "1") },
			func(f *fixture) string { return f.configMap("one", "1") + "  \"wrong key!\": x\n" },
		},
		"an annotation of the live object": {
			func(f *fixture) string { return f.web("") },
			func(f *fixture) string {
				f.edit(f.web(""), "kubectl-annotate", func(object *unstructured.Unstructured) {
					must(f, unstructured.SetNestedField(object.Object, "true", "metadata", "annotations",
						resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate))
				})
				return strings.ReplaceAll(f.web(""), "app: web", "app: other")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.manage("set", test.before(f))
			f.reconcileOK("set")
			bodies := f.keepBodies()
			f.secret("set", "objects.yaml", test.after(f))
			mr, _, _ := f.reconcile("set")
			if got := applied(mr); got.Status != "False" || got.Reason != "ApplyFailed" || !strings.Contains(got.Message, "nvalid") {
				t.Errorf("ResourcesApplied is %+v", got)
			}
			if deletions := bodies.of(http.MethodDelete); len(deletions) > 0 {
				t.Errorf("the deletions are %v", deletions)
			}
		})
	}
}

func TestContractImmutableSecretIsReplaced(t *testing.T) {
	f := newFixture(t)
	secret := func(value string) string {
		return f.here("apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: NS}\nimmutable: true\nstringData: {key: " + value + "}\n")
	}
	f.manage("set", secret("old"))
	f.reconcileOK("set")
	uid := f.object(secret("")).GetUID()
	f.secret("set", "objects.yaml", secret("new"))
	f.reconcileOK("set")
	if live := f.object(secret("")); live.GetUID() == uid || at(live, "data", "key") != "bmV3" {
		t.Errorf("the Secret is %v", live.Object)
	}
}

// TestContractAlwaysUpdate tests controllers.managedResource.alwaysUpdate.
func TestContractAlwaysUpdate(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"), f.web(""))
	f.reconcileOK("set")
	for _, always := range []bool{false, true} {
		f.reconciler.Options.AlwaysUpdate = always
		f.requests.writes()
		f.reconcileOK("set")
		if writes := f.requests.writes(); len(writes) != map[bool]int{false: 0, true: 2}[always] {
			t.Errorf("alwaysUpdate %t: the reconcile writes %v", always, writes)
		}
	}
}

// TestContractRequestsEnd: no request to the target cluster can block a worker forever.
func TestContractRequestsEnd(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	seen, endless := map[string]bool{}, map[string]bool{}
	f.requests.breakWith(func(request *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		line := request.Method + " " + request.URL.Path
		seen[request.Method] = true
		watches := request.URL.Query().Get("watch") == "true" // until they are ended
		if deadline, ok := request.Context().Deadline(); !watches && (!ok || time.Until(deadline) > time.Minute) {
			endless[line] = true
		}
		return nil
	})
	f.ctx = context.WithoutCancel(f.ctx)
	f.restart() // includes discovery
	mr := f.manage("set", f.configMap("one", "1"), f.web(""), f.here(strings.ReplaceAll(twins, "GROUP", "NS.example.org")))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.marked("one", "annotations: {resources.gardener.cloud/mode: Ignore}"))
	f.reconcileUntil("set", "all other objects are deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return len(mr.Status.Resources) == 0 })
	f.delete(mr)
	mu.Lock()
	defer mu.Unlock()
	if len(endless) > 0 || !seen[http.MethodGet] || !seen[http.MethodPatch] || !seen[http.MethodDelete] {
		t.Errorf("without a timeout: %v; methods: %v", endless, seen)
	}
}

package integration

import (
	"slices"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	fluxPrefix = "kustomize.toolkit.fluxcd.io/"
	argoPrefix = "argocd.argoproj.io/"
)

// annotated returns the manifest of a ConfigMap with an annotation.
func (f *fixture) annotated(name, value, annotation string) string {
	return strings.Replace(f.configMap(name, value), "metadata:\n", "metadata:\n  annotations: {"+annotation+"}\n", 1)
}

func TestObjectsThatAskToBeKept(t *testing.T) {
	for annotation, kept := range map[string]struct{ onPrune, onDelete bool }{
		"resources.gardener.cloud/keep-object: \"true\"":  {true, true},
		fluxPrefix + "prune: disabled":                    {true, true},
		fluxPrefix + "reconcile: disabled":                {true, true},
		"helm.sh/resource-policy: keep":                   {true, true},
		argoPrefix + "sync-options: Prune=false":          {true, false},
		argoPrefix + "sync-options: \"A=b,Delete=false\"": {false, true},
	} {
		t.Run(annotation, func(t *testing.T) {
			f := newFixture(t)
			mr := f.manage("set", f.annotated("pruned", "1", annotation), f.annotated("deleted", "1", annotation))
			f.reconcileOK("set")
			f.secret("set", "objects.yaml", f.annotated("deleted", "1", annotation))
			f.reconcileOK("set")
			if got := f.liveConfigMap("pruned") != nil; got != kept.onPrune {
				t.Errorf("kept when it left the manifests: %t", got)
			}
			if kept.onPrune {
				wantContains(t, f.event(), "Kept 1 (v1/ConfigMap/"+f.namespace+"/pruned)", "annotations of these objects request this")
			}
			f.delete(mr)
			if got := f.liveConfigMap("deleted") != nil; got != kept.onDelete {
				t.Errorf("kept when the ManagedResource was deleted: %t", got)
			}
		})
	}
}

func TestFluxIfNotPresent(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.annotated("once", "1", fluxPrefix+"ssa: IfNotPresent"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.annotated("once", "2", fluxPrefix+"ssa: IfNotPresent"))
	f.reconcileOK("set")
	f.wantConfigMap("once", "1")
	f.delete(mr)
	f.wantNoConfigMap("once")
}

func TestFluxIgnore(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.annotated("never", "1", fluxPrefix+"ssa: Ignore"))
	f.reconcileOK("set")
	f.wantNoConfigMap("never")
}

func TestFluxMerge_KeepsAddedFields(t *testing.T) {
	for annotation, kept := range map[string]bool{fluxPrefix + "ssa: Merge": true, fluxPrefix + "ssa: Override": false} {
		t.Run(annotation, func(t *testing.T) {
			f := newFixture(t)
			f.manage("set", f.annotated("one", "1", annotation))
			f.reconcileOK("set")
			live := f.liveConfigMap("one")
			live.Data["added"], live.Data["key"] = "by hand", "changed"
			must(t, f.client.Update(f.ctx, live, fieldOwner("kubectl-edit")))
			f.reconcileOK("set")
			if live := f.wantConfigMap("one", "1"); (live.Data["added"] != "") != kept {
				t.Errorf("the data is %v", live.Data)
			}
		})
	}
}

func TestFluxReconcileDisabled(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	live := f.liveConfigMap("one")
	live.Annotations[fluxPrefix+"reconcile"] = "disabled"
	live.Data["key"] = "by hand"
	must(t, f.client.Update(f.ctx, live, fieldOwner("somebody")))
	f.reconcileOK("set")
	f.wantConfigMap("one", "by hand")
}

func TestReplaceOnRequest(t *testing.T) {
	for _, annotation := range []string{fluxPrefix + "force: enabled", argoPrefix + "sync-options: Replace=true"} {
		t.Run(annotation, func(t *testing.T) {
			f := newFixture(t)
			manifest := func(app string) string {
				return strings.Replace(strings.ReplaceAll(f.web(""), "app: web", "app: "+app),
					"metadata:\n  name", "metadata:\n  annotations: {"+annotation+"}\n  name", 1)
			}
			f.manage("set", manifest("web"))
			f.reconcileOK("set")
			f.secret("set", "objects.yaml", manifest("other"))
			f.reconcileUntil("set", "the Deployment is replaced", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Status == resourcesv1alpha1.ConditionTrue
			})
			if got := f.liveDeployment().Spec.Selector.MatchLabels["app"]; got != "other" {
				t.Errorf("the selector is %q", got)
			}
		})
	}
}

func TestArgoWaves(t *testing.T) {
	f := newFixture(t)
	wave := func(number string) string { return argoPrefix + `sync-wave: "` + number + `"` }
	mr := f.manage("set", f.annotated("last", "1", wave("5")), f.configMap("middle", "1"), f.annotated("first", "1", wave("-1")))
	f.reconcileOK("set")
	want := []string{"first", "middle", "last"}
	if got := lastSegments(f.requests.writes()); !slices.Equal(got, want) {
		t.Errorf("applied in the order %v", got)
	}
	f.delete(mr)
	slices.Reverse(want)
	if got := lastSegments(f.requests.writes()); !slices.Equal(got, want) {
		t.Errorf("deleted in the order %v", got)
	}
}

func lastSegments(requests []string) []string {
	var names []string
	for _, request := range requests {
		names = append(names, request[strings.LastIndex(request, "/")+1:])
	}
	return names
}

// TestIgnoreOfAManagedObjectIsRecorded: the inventory has the annotation of an object that was managed before, and the
// object is no longer updated.
func TestIgnoreOfAManagedObjectIsRecorded(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.annotated("one", "2", `resources.gardener.cloud/ignore: "true"`))
	for range 2 {
		recorded := f.reconcileOK("set").Status.Resources
		if len(recorded) != 1 || recorded[0].Annotations["resources.gardener.cloud/ignore"] != "true" {
			t.Errorf("the inventory is %+v", recorded)
		}
		f.wantConfigMap("one", "1")
	}
	f.secret("set", "objects.yaml", f.configMap("one", "3"))
	f.reconcileOK("set")
	f.wantConfigMap("one", "3")
	f.delete(mr)
	f.wantNoConfigMap("one")
}

// TestDuplicateKeysAreNamed applies the last one of two equal keys, and names both in the condition.
func TestDuplicateKeysAreNamed(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1")+"  key: \"2\"\n", f.configMap("two", "1"))
	for range 2 {
		wantContains(t, applied(f.reconcileOK("set")).Message, "Keys that occur twice", "at index 0 in 'objects.yaml'", "data.key, line")
		f.wantConfigMap("one", "2")
	}
	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	if message := applied(f.reconcileOK("set")).Message; message != "All resources are applied." {
		t.Errorf("the message is %s", message)
	}
	f.wantNoConfigMap("two")
}

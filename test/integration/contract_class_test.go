package integration

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
)

// TestContractFinalizerOfClass: each resource-manager is responsible for one class, and the finalizer names that
// class.
func TestContractFinalizerOfClass(t *testing.T) {
	for configured, byClass := range map[string]map[string]string{ // the class of the ManagedResource → finalizer, empty if not responsible
		"":          {"nil": finalizer, "": finalizer, "resources": finalizer, "seed": ""},
		"resources": {"nil": finalizer, "": finalizer, "resources": finalizer, "seed": "", "*": ""},
		"*":         {"nil": finalizer, "": finalizer, "resources": finalizer, "seed": finalizer},
		"seed":      {"nil": "", "": "", "resources": "", "seed": finalizer + "-seed", "seed-2": "", "see": ""},
	} {
		f := newFixture(t)
		f.reconciler = f.newReconciler(shared.Get(t).Config(), f.client, managedresource.Options{Class: configured})
		for class, want := range byClass {
			name := strings.ReplaceAll("set-"+class, "*", "all") + "x"
			mr := f.manage(name, f.configMap(name, "1"))
			if class != "nil" {
				f.change(mr, func() { mr.Spec.Class = &class })
			}
			mr, result, err := f.reconcile(name)
			must(t, err)
			if got := strings.Join(mr.Finalizers, ","); got != want || (f.liveConfigMap(name) != nil) != (want != "") {
				t.Errorf("configured %q, class %q: the finalizer is %q, want %q; ConfigMap: %v", configured, class, got, want, f.liveConfigMap(name))
			}
			if want == "" && (len(mr.Status.Conditions) > 0 || result.RequeueAfter != 0) {
				t.Errorf("configured %q, class %q: the status of another class's ManagedResource is %+v, the requeue interval is %s", configured, class, mr.Status, result.RequeueAfter)
			}
		}
	}
}

// TestContractFinalizerPatches checks the requests that add and remove the finalizer.
func TestContractFinalizerPatches(t *testing.T) {
	f := newFixture(t)
	bodies := &requestBodies{}
	config := rest.CopyConfig(shared.Get(t).Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			must(t, bodies.keep(request))
			return next.RoundTrip(request)
		})
	})
	source, err := client.New(config, client.Options{Scheme: f.client.Scheme()})
	must(t, err)
	f.reconciler = f.newReconciler(shared.Get(t).Config(), source, managedresource.Options{})
	mr := f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.delete(mr)
	var patches []sentRequest
	for _, request := range bodies.of(http.MethodPatch) {
		if strings.HasSuffix(request.path, "/managedresources/set") {
			patches = append(patches, request)
		}
	}
	if len(patches) != 2 {
		t.Fatalf("the ManagedResource is patched by %v", patches)
	}
	for i, parts := range [][]string{{finalizer, "resourceVersion"}, {`"finalizers":null`, "resourceVersion"}} {
		if patches[i].contentType != "application/merge-patch+json" {
			t.Errorf("patch %d has the type %s", i, patches[i].contentType)
		}
		wantContains(t, patches[i].body, parts...)
	}
}

// as reconciles once as the resource-manager of a class.
func (f *fixture) as(class, name string) (*resourcesv1alpha1.ManagedResource, reconcile.Result, error) {
	f.Helper()
	own := f.reconciler
	defer func() { f.reconciler = own }()
	f.reconciler = f.newReconciler(shared.Get(f).Config(), f.client, managedresource.Options{Class: class})
	return f.reconcile(name)
}

// TestContractWaitsForOtherClasses: the resource-manager does nothing while a finalizer of another class exists, at
// any position in the list.
func TestContractWaitsForOtherClasses(t *testing.T) {
	for name, finalizers := range map[string][]string{
		"the default one": {finalizer},
		"another one":     {finalizer + "-other"},
		"before our own":  {finalizer + "-other", finalizer + "-seed"},
		"after our own":   {finalizer + "-seed", finalizer + "-other"},
		"not the first":   {"example.org/x", finalizer},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			mr := f.manage("set", f.configMap("one", "1"))
			f.change(mr, func() { mr.Spec.Class, mr.Finalizers = ptr.To("seed"), finalizers })
			mr, result, err := f.as("seed", "set")
			must(t, err)
			f.wantNoConfigMap("one")
			if !slices.Equal(mr.Finalizers, finalizers) || len(mr.Status.Conditions) > 0 || result.RequeueAfter != 0 {
				t.Errorf("while waiting: finalizers %v, status %+v, result %v", mr.Finalizers, mr.Status, result)
			}
			f.change(mr, func() {
				mr.Finalizers = slices.DeleteFunc(mr.Finalizers, func(f string) bool { return f == finalizer || f == finalizer+"-other" })
			})
			if mr, _, _ = f.as("seed", "set"); applied(mr).Status != resourcesv1alpha1.ConditionTrue {
				t.Errorf("ResourcesApplied is %+v", applied(mr))
			}
			f.wantConfigMap("one", "1")
		})
	}
}

// TestContractClassChangeKeepsObjects: keepObjects also applies if the class changes.
func TestContractClassChangeKeepsObjects(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"), f.configMap("leaves", "1"))
	f.change(mr, func() { mr.Spec.KeepObjects = ptr.To(true) })
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.wantNoConfigMap("leaves") // keepObjects applies to the ManagedResource, not to objects that leave its manifests
	uid := f.liveConfigMap("one").UID
	f.refresh(mr, func() { mr.Spec.Class = ptr.To("seed") })
	if mr, _, _ = f.reconcile("set"); len(mr.Finalizers) > 0 {
		t.Errorf("finalizers are %v", mr.Finalizers)
	}
	f.wantConfigMap("one", "1")
	if mr, _, _ = f.as("seed", "set"); applied(mr).Status != resourcesv1alpha1.ConditionTrue || f.liveConfigMap("one").UID != uid {
		t.Errorf("after the change, ResourcesApplied is %+v", applied(mr))
	}
}

// TestContractKeptObjectsKeepTheirMarks: with keepObjects, the objects stay unchanged.
func TestContractKeptObjectsKeepTheirMarks(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	f.change(mr, func() { mr.Spec.KeepObjects = ptr.To(true) })
	f.reconcileOK("set")
	before := f.liveConfigMap("one").ResourceVersion
	f.requests.writes()
	f.delete(mr)
	if writes := f.requests.writes(); len(writes) > 0 || f.liveConfigMap("one").ResourceVersion != before {
		t.Errorf("the deletion writes %v", writes)
	}
}

// TestContractIgnoredMovesNowhere: an ignored ManagedResource is neither handed over nor taken over, but it can be
// deleted.
func TestContractIgnoredMovesNowhere(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.refresh(mr, func() {
		mr.Spec.Class, mr.Annotations = ptr.To("seed"), map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	})
	mr, _, err := f.reconcile("set")
	must(t, err)
	if f.wantConfigMap("one", "1"); !slices.Equal(mr.Finalizers, []string{finalizer}) || applied(mr).Reason != "ApplySucceeded" {
		t.Errorf("the old one: finalizers %v, %+v", mr.Finalizers, applied(mr))
	}
	mr, _, err = f.as("seed", "set")
	must(t, err)
	if !slices.Equal(mr.Finalizers, []string{finalizer}) || applied(mr).Reason != "ManagedResourceIgnored" {
		t.Errorf("the new one: finalizers %v, %+v", mr.Finalizers, applied(mr))
	}
	f.delete(mr)
	f.wantNoConfigMap("one")
}

// TestContractWaitForState: the resource-manager does nothing while the annotation exists. This includes the
// deletion.
func TestContractWaitForState(t *testing.T) {
	f := newFixture(t)
	waiting := map[string]string{resourcesv1alpha1.AnnotationOperation: "wait-for-state"}
	mr := f.manage("set", f.configMap("one", "1"))
	f.change(mr, func() { mr.Annotations = waiting })
	mr, result, err := f.reconcile("set")
	must(t, err)
	f.wantNoConfigMap("one")
	if len(mr.Finalizers) > 0 || len(mr.Status.Conditions) > 0 || result.RequeueAfter != 0 || len(mr.Annotations) != 1 {
		t.Errorf("finalizers %v, status %+v, result %v, annotations %v", mr.Finalizers, mr.Status, result, mr.Annotations)
	}
	f.refresh(mr, func() { mr.Annotations = nil })
	f.reconcileOK("set")
	f.refresh(mr, func() { mr.Annotations = waiting })
	must(t, f.client.Delete(f.ctx, mr))
	mr, _, err = f.reconcile("set")
	must(t, err)
	f.wantConfigMap("one", "1")
	f.refresh(mr, func() { mr.Annotations = nil })
	f.reconcileUntil("set", "the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
	f.wantNoConfigMap("one")
}

// TestContractOperationsThatStay: the operations restore and migrate act like reconcile, but their annotation stays.
func TestContractOperationsThatStay(t *testing.T) {
	for operation, stays := range map[string]bool{"reconcile": false, "restore": true, "migrate": true, "anything": true} {
		f := newFixture(t)
		mr := f.manage("set", f.configMap("one", "1"))
		f.change(mr, func() { mr.Annotations = map[string]string{"gardener.cloud/operation": operation} })
		mr = f.reconcileOK("set")
		f.wantConfigMap("one", "1")
		if got := mr.Annotations["gardener.cloud/operation"] != ""; got != stays {
			t.Errorf("%s: annotations are %v", operation, mr.Annotations)
		}
	}
}

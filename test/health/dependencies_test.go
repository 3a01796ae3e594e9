package health

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

const dependent = "dependent"

// dependsOn creates a ManagedResource for the Secret of its name. It depends on another ManagedResource.
func (f *fixture) dependsOn(name, dependency string) {
	f.Helper()
	must(f, f.client.Create(f.ctx, &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class:      ptr.To(f.manager.class),
			SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: name}},
			DependsOn:  []resourcesv1alpha1.Dependency{{Name: dependency}},
		},
	}))
}

// newKind defines a kind that has no watch yet.
func (f *fixture) newKind(kind string) schema.GroupVersionKind {
	f.Helper()
	group := f.namespace + ".example.org"
	kit.Define(f, f.controlPlane.Config(), definition(group, "v1", kind, strings.ToLower(kind)+"s"))
	return kindOf(group+"/v1", kind)
}

// hasConfigMap reports whether a ConfigMap exists.
func (f *fixture) hasConfigMap(name string) bool {
	f.Helper()
	err := f.client.Get(f.ctx, f.key(name), &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		must(f, err)
	}
	return err == nil
}

func sized(gvk schema.GroupVersionKind) check {
	return check{Group: gvk.Group, Kind: gvk.Kind, Healthy: "status.size == spec.size"}
}

// opensLate creates a ManagedResource with an object of a kind, and another one that depends on it. The dependency must not be reported
// as healthy, and the dependent must not be applied, before the object's status allows it.
func (f *fixture) opensLate(gvk schema.GroupVersionKind, between func()) {
	f.Helper()
	f.secret(managed, custom(gvk, "app", "size: 3"))
	f.secret(dependent, configMap)
	history := f.follow(managed)
	f.managedResource(managed, sized(gvk))
	f.dependsOn(dependent, managed)
	between()
	f.eventuallySays(managed, unhealthy(gvk.Kind+"Unhealthy", "has no status yet"), want{})
	for _, said := range history.changes(resourcesv1alpha1.ResourcesHealthy) {
		if said.Status == resourcesv1alpha1.ConditionTrue {
			f.Errorf("%s was reported as healthy before its check had evaluated it", gvk.Kind)
		}
	}
	if f.hasConfigMap("app") {
		f.Errorf("the dependent of %s was applied before its dependency was healthy", gvk.Kind)
	}
	f.setStatus(gvk, "app", `{"size": 3}`)
	f.eventuallySays(managed, isHealthy, isRolledOut)
	f.eventually("the dependent is applied", func() string {
		if f.hasConfigMap("app") {
			return ""
		}
		return "its object does not exist"
	})
}

// TestDependencyOfANewKind checks that the check of the ManagedResource decides from the beginning for a kind that has had no watch
// before.
func TestDependencyOfANewKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 6 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			f := f.in(t)
			f.opensLate(f.newKind("Gadget"), func() {})
		})
	}
}

// TestDependencyWithSlowWatches checks that neither a slow watch nor a slow list makes a dependency healthy.
func TestDependencyWithSlowWatches(t *testing.T) {
	t.Parallel()
	for name, slows := range map[string]func(*http.Request) bool{
		"watches": func(r *http.Request) bool { return r.URL.Query().Has("watch") },
		"all":     func(r *http.Request) bool { return r.Method == http.MethodGet },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(r *inprocess.ResourceManager) {
				r.Target.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
						if strings.Contains(request.URL.Path, "gadgets") && slows(request) {
							select {
							case <-time.After(2 * time.Second): // longer than the resource-manager waits for its own writes
							case <-request.Context().Done():
							}
						}
						return next.RoundTrip(request)
					})
				})
			})
			f.opensLate(f.newKind("Gadget"), func() {})
		})
	}
}

// TestDependencyAcrossARestart checks that a resource-manager that takes over while a dependency is being applied comes to the same
// verdict as the first one.
func TestDependencyAcrossARestart(t *testing.T) {
	t.Parallel()
	f := fixtureWithoutManager(t, shared.Get(t))
	begun := make(chan struct{}, 1)
	first := f.startManager(func(r *inprocess.ResourceManager) {
		r.Target.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(request)
				if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "gadgets") {
					select {
					case begun <- struct{}{}:
					default:
					}
					<-request.Context().Done() // the object is written, but the first resource-manager gets no answer
				}
				return response, err
			})
		})
	})
	f.manager = first
	gvk := f.newKind("Gadget")
	f.opensLate(gvk, func() {
		<-begun
		first.stop()
		f.manager = f.startManager(func(r *inprocess.ResourceManager) { r.Class, r.Identity = first.class, first.class })
	})
}

// TestChangedCheckOfADependency checks that the result of a former check does not count for the current one.
func TestChangedCheckOfADependency(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gvk := f.newKind("Gadget")
	f.secret(managed, custom(gvk, "app", "size: 3"))
	f.managedResource(managed)
	f.eventuallySays(managed, isHealthy, isRolledOut)
	history := f.follow(managed)
	f.setChecks(managed, sized(gvk))
	f.eventuallySays(managed, unhealthy("GadgetUnhealthy", "has no status yet"), want{})
	f.eventually("generation 2 is applied", func() string { return history.objectionToApplied(2) })
	if history.ready(2) {
		t.Error("the ManagedResource was ready at generation 2 before the check of that generation had evaluated its object")
	}
	f.setStatus(gvk, "app", `{"size": 3}`)
	f.eventuallySays(managed, isHealthy, isRolledOut)

	// The health of an object before a change does not count after it.
	f.secret("other", custom(gvk, "app", "size: 4"))
	f.change(managed, `{"spec": {"secretRefs": [{"name": "other"}]}}`)
	f.eventuallySays(managed, unhealthy("GadgetUnhealthy", "not healthy"), want{})
	f.eventually("generation 3 is applied", func() string { return history.objectionToApplied(3) })
	if history.ready(3) {
		t.Error("the ManagedResource was ready at generation 3 before the check had evaluated the changed object")
	}
}

// TestDependencyThatTurnsUnhealthy checks that dependents that are already applied are kept, and that their conditions do not change.
func TestDependencyThatTurnsUnhealthy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gvk := f.newKind("Gadget")
	f.secret(managed, custom(gvk, "app", "size: 3"))
	f.managedResource(managed, sized(gvk))
	names := []string{"one", "two", "three", "four"}
	for _, name := range names {
		f.secret(name, strings.Replace(configMap, "name: app", "name: "+name, 1))
		f.dependsOn(name, managed)
	}
	f.setStatusOnceThere(gvk, `{"size": 3}`)
	said := map[string]resourcesv1alpha1.Condition{}
	for _, name := range names {
		f.eventuallySays(name, isHealthy, isRolledOut)
		said[name] = conditionOf(f.read(name), resourcesv1alpha1.ResourcesApplied)
	}
	f.setStatus(gvk, "app", `{"size": 2}`)
	f.eventuallySays(managed, unhealthy("GadgetUnhealthy", "not healthy"), want{})
	for _, name := range names {
		must(t, f.client.Delete(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}))
	}
	for _, name := range names {
		f.eventually("the object of "+name+" is restored", func() string {
			if f.hasConfigMap(name) {
				return ""
			}
			return "it does not exist"
		})
	}
	f.secret("one", strings.NewReplacer("name: app", "name: one", `"1"`, `"2"`).Replace(configMap))
	f.eventually("the change of one waits", func() string {
		return want{resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDependencyNotReady, "is not healthy: GadgetUnhealthy"}.
			objection(conditionOf(f.read("one"), resourcesv1alpha1.ResourcesApplied))
	})
	for _, name := range names[1:] {
		// The message about health may state that the deleted object was missing.
		if says := conditionOf(f.read(name), resourcesv1alpha1.ResourcesApplied); !reflect.DeepEqual(says, said[name]) {
			t.Errorf("the condition of %s was %+v, now it is %+v", name, said[name], says)
		}
	}
	f.setStatus(gvk, "app", `{"size": 3}`)
	f.eventuallySays(managed, isHealthy, isRolledOut)
	f.eventually("the change of one is applied", func() string {
		return want{status: resourcesv1alpha1.ConditionTrue}.objection(conditionOf(f.read("one"), resourcesv1alpha1.ResourcesApplied))
	})
}

// setStatusOnceThere sets the status of the object "app" once it exists.
func (f *fixture) setStatusOnceThere(gvk schema.GroupVersionKind, status string) {
	f.Helper()
	f.eventually("the object exists", func() string {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(gvk)
		return textOf(f.client.Get(f.ctx, f.key("app"), obj))
	})
	f.setStatus(gvk, "app", status)
}

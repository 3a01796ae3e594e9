package integration

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// broken is the manifest of an object that the API server rejects.
func (f *fixture) broken(name string) string {
	return f.here("apiVersion: v1\nkind: Service\nmetadata: {name: " + name + ", namespace: NS}\nspec: {ports: [{port: 99999}]}\n")
}

// TestContractConditionTimes: the transition time changes with the status. The update time also changes with the
// reason and message. Neither changes otherwise. The conditions of other controllers keep their content and position.
func TestContractConditionTimes(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	theirs := resourcesv1alpha1.Condition{
		Type: "TheirsAlone", Status: resourcesv1alpha1.ConditionFalse, Reason: "PodUnhealthy", Message: "x",
		LastTransitionTime: metav1.NewTime(f.clock.Now().Add(-time.Hour)), LastUpdateTime: metav1.NewTime(f.clock.Now().Add(-time.Minute)),
		Codes: []string{"ERR_CONFIGURATION_PROBLEM"},
	}
	mr.Status.Conditions = []resourcesv1alpha1.Condition{theirs}
	must(t, f.client.Status().Update(f.ctx, mr, client.FieldOwner("health")))
	var transition, update time.Time
	for _, step := range []struct {
		what     string
		manifest string
		status   resourcesv1alpha1.ConditionStatus
		moves    int // 0: nothing, 1: the update time, 2: both
	}{
		{"created", f.configMap("one", "1"), "True", 2},
		{"nothing", f.configMap("one", "1"), "True", 0},
		{"another object", f.configMap("one", "2"), "True", 0},
		{"broken", f.configMap("one", "2") + "---\n" + f.broken("a"), "False", 2},
		{"nothing new", f.configMap("one", "2") + "---\n" + f.broken("a"), "False", 0},
		{"broken in another way", f.configMap("one", "2") + "---\n" + f.broken("a") + "---\nnonsense\n", "False", 1},
		{"mended", f.configMap("one", "2"), "True", 2},
	} {
		f.clock.SetTime(f.clock.Now().Add(time.Minute))
		f.secret("set", "objects.yaml", step.manifest)
		mr, _, _ := f.reconcile("set")
		got := applied(mr)
		if step.moves > 0 {
			update = f.clock.Now()
		}
		if step.moves > 1 {
			transition = update
		}
		if got.Status != step.status || !got.LastTransitionTime.Time.Equal(transition) || !got.LastUpdateTime.Time.Equal(update) {
			t.Errorf("%s: got %+v, want %s since %s, updated %s", step.what, got, step.status, transition, update)
		}
		if len(mr.Status.Conditions) != 5 || mr.Status.Conditions[0].Type != theirs.Type {
			t.Errorf("%s: the order is %v", step.what, mr.Status.Conditions)
		}
		if health := mr.Status.Conditions[0]; !health.LastUpdateTime.Equal(&theirs.LastUpdateTime) ||
			!health.LastTransitionTime.Equal(&theirs.LastTransitionTime) || health.Reason != theirs.Reason || !slices.Equal(health.Codes, theirs.Codes) {
			t.Errorf("%s: the condition of another controller changed to %+v", step.what, health)
		}
		if len(got.Codes) > 0 {
			t.Errorf("%s: the codes are %v", step.what, got.Codes)
		}
	}
}

// TestContractConditionsOfOthersMeanwhile: another controller writes its condition while objects are being applied.
func TestContractConditionsOfOthersMeanwhile(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	write := func(reason string) error {
		fresh := f.read("set")
		fresh.Status.Conditions = slices.DeleteFunc(fresh.Status.Conditions, func(c resourcesv1alpha1.Condition) bool {
			return c.Type == resourcesv1alpha1.ResourcesHealthy
		})
		fresh.Status.Conditions = append(fresh.Status.Conditions, resourcesv1alpha1.Condition{
			Type: resourcesv1alpha1.ResourcesHealthy, Status: "False", Reason: reason,
			LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
		return f.client.Status().Update(f.ctx, fresh, client.FieldOwner("health"))
	}
	f.reconcileOK(mr.Name) // reports before the checks of the current generation are known do not count
	must(t, write("Before"))
	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	f.requests.breakWith(func(request *http.Request) error {
		if request.Method != http.MethodPatch {
			return nil
		}
		return write("Meanwhile")
	})
	mr = f.reconcileOK(mr.Name)
	i := slices.IndexFunc(mr.Status.Conditions, func(c resourcesv1alpha1.Condition) bool { return c.Type == resourcesv1alpha1.ResourcesHealthy })
	if i < 0 || mr.Status.Conditions[i].Reason != "Meanwhile" {
		t.Errorf("the conditions are %+v", mr.Status.Conditions)
	}
}

// whileApplying returns the state of a ManagedResource at the moment when one of its ConfigMaps is sent.
func (f *fixture) whileApplying(configMap string) *resourcesv1alpha1.ManagedResource {
	seen := &resourcesv1alpha1.ManagedResource{}
	f.requests.breakWith(func(request *http.Request) error {
		if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/configmaps/"+configMap) {
			return f.client.Get(request.Context(), types.NamespacedName{Namespace: f.namespace, Name: "set"}, seen)
		}
		return nil
	})
	return seen
}

// TestContractApplyProgressing checks the condition while new objects are being applied. A failure stays visible
// until it is fixed, and no client can mistake a new generation for an applied one in the meantime.
func TestContractApplyProgressing(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	seen := f.whileApplying("one")
	f.reconcileOK("set")
	wantProgress := func(reason, message string) {
		t.Helper()
		got := applied(seen)
		if got.Status != resourcesv1alpha1.ConditionProgressing || got.Reason != reason || !strings.Contains(got.Message, message) {
			t.Errorf("while applying, ResourcesApplied is %+v", got)
		}
		if !slices.Contains(seen.Finalizers, resourcesv1alpha1.Finalizer) {
			t.Error("while applying, the finalizer is missing")
		}
	}
	wantProgress("ApplyProgressing", "The resources are currently being reconciled.")

	f.secret("set", "objects.yaml", f.configMap("one", "1"), "broken.yaml", f.broken("a"))
	if mr, _, _ := f.reconcile("set"); applied(mr).Reason != "ApplyFailed" {
		t.Fatalf("ResourcesApplied is %+v", applied(mr))
	}
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	seen = f.whileApplying("two")
	f.secret("set", "objects.yaml", f.configMap("one", "1"), "two.yaml", f.configMap("two", "1"))
	f.reconcileOK("set")
	wantProgress("ApplyFailed", "spec.ports[0].port")
	if got := applied(seen); !got.LastUpdateTime.Time.Equal(f.clock.Now()) || !got.LastTransitionTime.Time.Equal(f.clock.Now()) {
		t.Errorf("while applying, the times of ResourcesApplied are %s and %s", got.LastTransitionTime, got.LastUpdateTime)
	}

	f.refresh(mr, func() { mr.Spec.InjectLabels = map[string]string{"a": "b"} })
	seen = f.whileApplying("one")
	mr = f.reconcileOK("set")
	if seen.Status.ObservedGeneration == seen.Generation || mr.Status.ObservedGeneration != mr.Generation {
		t.Errorf("generation %d: while applying, %d is observed, and %d after it",
			mr.Generation, seen.Status.ObservedGeneration, mr.Status.ObservedGeneration)
	}
}

// TestContractFixedMessages checks messages that other programs may depend on.
func TestContractFixedMessages(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	mr := f.reconcileOK("set")
	if got := applied(mr); got.Reason != "ApplySucceeded" || got.Message != "All resources are applied." {
		t.Errorf("ResourcesApplied is %+v", got)
	}
	f.change(mr, func() { mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"} })
	mr, result, err := f.reconcile("set")
	must(t, err)
	if got := applied(mr); got.Status != "True" || got.Reason != "ManagedResourceIgnored" || got.Message != "ManagedResource is marked to be ignored." {
		t.Errorf("ResourcesApplied is %+v", got)
	}
	if result.RequeueAfter != 0 {
		t.Errorf("the requeue interval of an ignored one is %s", result.RequeueAfter)
	}
}

// robot makes a ManagedResource act as a ServiceAccount that may use the given verbs on ConfigMaps.
func (f *fixture) robot(mr *resourcesv1alpha1.ManagedResource, verbs ...string) {
	f.Helper()
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: "robot"}
	must(f, f.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: meta}))
	must(f, f.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: meta}))
	must(f, f.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "robot"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "robot"},
	}))
	f.allow(verbs...)
	f.change(mr, func() { mr.Spec.ServiceAccountName = "robot" })
}

func (f *fixture) allow(verbs ...string) {
	f.Helper()
	role := &rbacv1.Role{}
	must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "robot"}, role))
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}
	must(f, f.client.Update(f.ctx, role))
	f.eventually("the API server knows the new rights", func() bool {
		return !slices.ContainsFunc([]string{"get", "create", "patch", "delete"}, func(verb string) bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + f.namespace + ":robot",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: f.namespace, Verb: verb, Resource: "configmaps"},
			}}
			must(f, f.client.Create(f.ctx, review))
			return review.Status.Allowed != slices.Contains(verbs, verb)
		})
	})
}

// TestContractFailedDeletionAndRelease makes the API server reject deletions and releases.
func TestContractFailedDeletionAndRelease(t *testing.T) {
	ignored := "annotations: {resources.gardener.cloud/mode: Ignore}"
	for reason, test := range map[string]struct {
		allowed []string
		next    func(f *fixture) string
	}{
		"DeletionFailed":                   {[]string{"get", "create", "patch"}, func(f *fixture) string { return f.configMap("two", "1") }},
		"ReleaseOfOrphanedResourcesFailed": {[]string{"get", "create", "delete"}, func(f *fixture) string { return f.marked("one", ignored) + "---\n" + f.configMap("two", "1") }},
	} {
		t.Run(reason, func(t *testing.T) {
			f := newFixture(t)
			mr := f.manage("set", f.configMap("one", "1"), f.configMap("two", "1"))
			f.robot(mr, "get", "create", "patch", "delete")
			f.reconcileUntil("set", "the set is applied", func(mr *resourcesv1alpha1.ManagedResource) bool { return applied(mr).Status == "True" })
			f.allow(test.allowed...)
			f.secret("set", "objects.yaml", test.next(f))
			var got resourcesv1alpha1.Condition
			f.reconcileUntil("set", "the request is rejected", func(mr *resourcesv1alpha1.ManagedResource) bool {
				got = applied(mr)
				return got.Status == "False"
			})
			if got.Reason != reason {
				t.Errorf("ResourcesApplied is %+v", got)
			}
			wantContains(t, got.Message, "v1/ConfigMap/"+f.namespace+"/one", "forbidden")
			f.wantConfigMap("one", "1")
			_, _, err := f.reconcile("set")
			if err == nil {
				t.Error("the failure is not retried")
			}
			f.allow("get", "create", "patch", "delete")
			f.reconcileUntil("set", "the failure is fixed", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Status == "True" && len(mr.Status.Resources) == 1
			})
		})
	}
}

package selfupgrade

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestReconciled checks the condition GardenletReconciled: a rollout is in progress, and only one that has failed is reported as such.
func TestReconciled(t *testing.T) {
	live := func(applied, healthy, progressing resourcesv1alpha1.ConditionStatus) flow.Result {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}}
		mr.Status.ObservedGeneration = 1
		mr.Status.Conditions = []resourcesv1alpha1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: applied, Message: "refused"},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: healthy, Message: "does not start"},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: progressing, Message: "rolls out"},
		}
		return flow.Result{Live: flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}}
	}
	const yes, no = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse
	for name, test := range map[string]struct {
		result flow.Result
		wait   string
		status corev1beta1.ConditionStatus
		text   string
	}{
		"a foreign ManagedResource": {flow.Result{Decision: flow.Decision{Problems: map[flow.Key]string{key: "of another owner"}}}, "", corev1beta1.ConditionFalse, "of another owner"},
		"no credentials":            {live(yes, yes, no), "no kubeconfig", corev1beta1.ConditionFalse, "not upgraded: no kubeconfig"},
		"new":                       {flow.Result{}, "", corev1beta1.ConditionProgressing, "has not observed"},
		"refused":                   {live(no, yes, no), "", corev1beta1.ConditionFalse, "has failed"},
		"does not start":            {live(yes, no, yes), "", corev1beta1.ConditionFalse, "the former gardenlet continues to run"},
		"rolls out":                 {live(yes, yes, yes), "", corev1beta1.ConditionProgressing, "rolls out"},
		"done":                      {live(yes, yes, no), "", corev1beta1.ConditionTrue, "chart:1 is deployed"},
	} {
		got := reconciled(test.result, "chart:1", test.wait)
		if got.status != test.status || !strings.Contains(got.message, test.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestPlans checks that the objects of the gardenlet stay when its ManagedResource is deleted.
func TestPlans(t *testing.T) {
	for _, plan := range []flow.Plan{planFor(nil, ""), planFor(nil, "wait"), givingUp()} {
		if err := plan.Validate(); err != nil {
			t.Error(err)
		}
	}
	if spec := planFor(nil, "").Bundles[0].Spec; !ptr.Deref(spec.KeepObjects, false) || ptr.Deref(spec.Class, "") != "seed" {
		t.Errorf("the spec is %+v", spec)
	}
}

func TestChartOf(t *testing.T) {
	for want, from := range map[string]gardencorev1.OCIRepository{
		"a/b:1":        {Ref: ptr.To("a/b:1")},
		"a/b:2":        {Repository: ptr.To("a/b"), Tag: ptr.To("2")},
		"a/b:sha256:0": {Repository: ptr.To("a/b"), Tag: ptr.To("2"), Digest: ptr.To("sha256:0")},
		"a/b":          {Repository: ptr.To("a/b")},
	} {
		gardenlet := &v1alpha1.Gardenlet{}
		gardenlet.Spec.Deployment.Helm.OCIRepository = from
		if got := ChartOf(gardenlet); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

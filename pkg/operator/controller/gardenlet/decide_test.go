package gardenlet

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
)

func named(name string, annotations, labels map[string]string) *v1alpha1.Gardenlet {
	return &v1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Annotations: annotations, Labels: labels}}
}

// TestDecide checks that a gardenlet is deployed once, again on request, and left alone when it is registered or its Gardenlet is deleted.
func TestDecide(t *testing.T) {
	force := map[string]string{"gardener.cloud/operation": "force-redeploy"}
	deleted := named("local", force, nil)
	deleted.DeletionTimestamp = ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		gardenlet *v1alpha1.Gardenlet
		seed      bool
		want      action
	}{
		"no Seed":                    {named("local", nil, nil), false, deploy},
		"a Seed":                     {named("local", nil, nil), true, leave},
		"a Seed, on request":         {named("local", force, nil), true, deploy},
		"another operation":          {named("local", map[string]string{"gardener.cloud/operation": "renew-kubeconfig"}, nil), true, leave},
		"a self-hosted Shoot":        {named("self-hosted-shoot-local", force, nil), false, ignore},
		"the Gardenlet is deleted":   {deleted, false, ignore},
		"a deleted one, with a Seed": {deleted, true, ignore},
	} {
		if got := decide(test.gardenlet, test.seed); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// TestFollowed checks which Gardenlets get the chart of the operator.
func TestFollowed(t *testing.T) {
	const chart = "registry.example.org/charts/gardenlet:v2"
	follows := map[string]string{"operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref": "true"}
	current := named("local", nil, follows)
	current.Spec.Deployment.Helm.OCIRepository.Ref = ptr.To(chart)
	deleted := named("local", nil, follows)
	deleted.DeletionTimestamp = ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		gardenlet   *v1alpha1.Gardenlet
		chart, want string
	}{
		"follows":    {named("local", nil, follows), chart, chart},
		"not":        {named("local", nil, nil), chart, ""},
		"another":    {named("local", nil, map[string]string{"operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref": "false"}), chart, ""},
		"has it":     {current, chart, ""},
		"no chart":   {named("local", nil, follows), "", ""},
		"is deleted": {deleted, chart, ""},
	} {
		if got := followed(test.gardenlet, test.chart); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestGarden(t *testing.T) {
	garden := operatorv1alpha1.Garden{}
	if isReconciled(&garden) || addressOf([]operatorv1alpha1.Garden{garden}) != "" {
		t.Error("a new Garden is reconciled, or has an address")
	}
	garden.Generation, garden.Status.ObservedGeneration = 2, 2
	garden.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded}
	garden.Spec.VirtualCluster.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.org"}}
	if got := addressOf([]operatorv1alpha1.Garden{garden}); !isReconciled(&garden) || got != "https://api.garden.example.org" {
		t.Errorf("a Garden: %q", got)
	}
	garden.Generation = 3
	if isReconciled(&garden) {
		t.Error("a changed Garden is reconciled")
	}
}

func TestConditions(t *testing.T) {
	if got := deployed(named("local", nil, nil), gardenletdeployer.Step{}); got.status != corev1beta1.ConditionProgressing || !strings.Contains(got.message, "Seed local") {
		t.Errorf("deployed: %+v", got)
	}
	if got := deployed(named("local", nil, nil), gardenletdeployer.Step{Missing: "no kubeconfig"}); got.status != corev1beta1.ConditionFalse {
		t.Errorf("without access: %+v", got)
	}
	if got := failed(errors.New("pull")); got.status != corev1beta1.ConditionFalse || got.reason != reasonFailed || got.message != "pull" {
		t.Errorf("failed: %+v", got)
	}
}

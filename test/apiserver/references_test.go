package apiserver

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/extension/validation"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestReferences checks with a real garden that the types of extensions must be registered, that objects get labels of them, and
// that a registration needs its deployment.
func TestReferences(t *testing.T) {
	t.Parallel()
	c := newClientFor(t, startGardenWith(t, garden.Options{References: true}))
	forbidden := func(err error, text string) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want 403 with %q", err, text)
		}
	}
	registration := &gardencorev1beta1.ControllerRegistration{}
	registration.Name = "references"
	for _, kind := range []string{"BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord"} {
		registration.Spec.Resources = append(registration.Spec.Resources, gardencorev1beta1.ControllerResource{Kind: kind, Type: "local"})
	}
	registration.Spec.Deployment = &gardencorev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []gardencorev1beta1.DeploymentRef{{Name: "missing"}}}
	forbidden(c.Create(t.Context(), registration.DeepCopy()), `Not found: "ControllerDeployment missing"`)
	registration.Spec.Deployment = nil

	seed := exampleOf(t, "Seed", "", "references", &gardencorev1beta1.Seed{})
	seed.Spec.Extensions, seed.Spec.Resources = nil, nil
	forbidden(c.Create(t.Context(), seed.DeepCopy()), "given Seed uses non-registered provider type")
	kit.Must(t, c.Create(t.Context(), registration))
	kit.Must(t, c.Create(t.Context(), seed))
	if seed.Labels["provider.extensions.gardener.cloud/local"] != "true" {
		t.Errorf("the Seed has the labels %v", seed.Labels)
	}
	selectsByLabel(t, c)
}

// selectsByLabel checks that the webhook of an extension is called for the Seeds of its infrastructure and for no others, because it selects
// them by their label. The label is there when the object is created.
func selectsByLabel(t *testing.T, c client.Client) {
	t.Helper()
	other := &gardencorev1beta1.ControllerRegistration{}
	other.Name = "references-other"
	for _, kind := range []string{"BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord"} {
		other.Spec.Resources = append(other.Spec.Resources, gardencorev1beta1.ControllerResource{Kind: kind, Type: "other"})
	}
	kit.Must(t, c.Create(t.Context(), other))
	configuration := labelling(t, "references", func() {})
	selector, err := validation.ObjectSelector("Infrastructure", "local")
	kit.Must(t, err)
	seeds := shootRules
	seeds.Resources = []string{"seeds"}
	configuration.Webhooks[0].ObjectSelector, configuration.Webhooks[0].NamespaceSelector = selector, nil
	configuration.Webhooks[0].Rules = []admissionregistrationv1.RuleWithOperations{seeds}
	kit.Must(t, c.Create(t.Context(), configuration))
	create := func(infrastructure string) bool {
		seed := exampleOf(t, "Seed", "", "selected", &gardencorev1beta1.Seed{})
		seed.Spec.Extensions, seed.Spec.Resources, seed.Spec.Backup, seed.Spec.Provider.Type = nil, nil, nil, infrastructure
		kit.Must(t, c.Create(t.Context(), seed, client.DryRunAll))
		return seed.Labels["webhook"] == "called"
	}
	kit.EventuallyTrue(t, "the webhook is called for a Seed of its infrastructure", func() bool { return create("local") })
	if create("other") {
		t.Error("the webhook is called for a Seed of another infrastructure")
	}
}

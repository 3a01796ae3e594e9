package apiserver

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
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
}

package apiserver

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestAdmissionPlugins checks that the facts of admission plugins are those of the garden: plugins that need other objects
// change or refuse one object each.
func TestAdmissionPlugins(t *testing.T) {
	t.Parallel()
	const namespace = "garden-plugins"
	c := newClient(t)
	ensureNamespace(t, c, namespace)
	forbidden := func(err error, text string) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want 403 with %q", err, text)
		}
	}

	project := &gardencorev1beta1.Project{}
	project.Name, project.Spec.Namespace = "plugins", ptr(namespace)
	project.Spec.Tolerations = &gardencorev1beta1.ProjectTolerations{Whitelist: []gardencorev1beta1.Toleration{{Key: "allowed"}}}
	kit.Must(t, c.Create(t.Context(), project))
	if project.Spec.CreatedBy == nil || project.Spec.Owner == nil || len(project.Spec.Members) != 1 {
		t.Errorf("the Project is %+v, and has no creator, owner or member", project.Spec)
	}

	class := &gardencorev1beta1.ExposureClass{Handler: "plugins"}
	class.Name = "plugins"
	class.Scheduling = &gardencorev1beta1.ExposureClassScheduling{SeedSelector: &gardencorev1beta1.SeedSelector{ProviderTypes: []string{"plugins"}}}
	kit.Must(t, c.Create(t.Context(), class))
	shoot := exampleOf(t, "Shoot", namespace, "one", &gardencorev1beta1.Shoot{})
	shoot.Annotations, shoot.Labels, shoot.Spec.SeedName, shoot.Spec.SeedSelector = nil, nil, nil, nil
	shoot.Spec.ExposureClassName = ptr(class.Name)
	shoot.Spec.Tolerations = []gardencorev1beta1.Toleration{{Key: "other"}}
	forbidden(c.Create(t.Context(), shoot), `the key "other" with this value is not allowed`)
	shoot.Spec.Tolerations[0].Key = "allowed"
	kit.Must(t, c.Create(t.Context(), shoot))
	if selector := shoot.Spec.SeedSelector; selector == nil || len(selector.ProviderTypes) != 1 {
		t.Errorf("the selector %v is not that of the ExposureClass", selector)
	}

	orphan := &gardencorev1beta1.NamespacedCloudProfile{}
	orphan.Namespace, orphan.Name = namespace, "orphan"
	orphan.Spec.Parent = gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "none"}
	if err := c.Create(t.Context(), orphan); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `"none" does not exist`) {
		t.Errorf("a profile without its parent: %v", err)
	}

	registration := &gardencorev1beta1.ControllerRegistration{}
	registration.Name = "plugins-first"
	registration.Spec.Resources = []gardencorev1beta1.ControllerResource{{Kind: "Worker", Type: "plugins"}}
	second := registration.DeepCopy()
	kit.Must(t, c.Create(t.Context(), registration))
	second.Name = "plugins-second"
	forbidden(c.Create(t.Context(), second), "is already primary for Worker/plugins")

	seed := exampleOf(t, "Seed", "", "plugins", &gardencorev1beta1.Seed{})
	kit.Must(t, c.Create(t.Context(), seed))
	bound := shoot.DeepCopy()
	bound.Spec.SeedName = ptr(seed.Name)
	kit.Must(t, c.SubResource("binding").Update(t.Context(), bound))
	forbidden(c.Delete(t.Context(), seed), "1 Shoots use the Seed, such as garden-plugins/one")

	confirmDeletion(bound)
	kit.Must(t, c.Update(t.Context(), bound))
	kit.Must(t, client.IgnoreNotFound(c.Delete(t.Context(), bound)))
}

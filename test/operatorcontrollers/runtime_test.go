package operatorcontrollers

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extension"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestInRuntime checks that an extension is installed in the runtime cluster as soon as there is a Garden that needs it: nothing is before, and the
// Garden was not reconciled yet. Without values for the runtime cluster it is removed.
func TestInRuntime(t *testing.T) {
	f := newFixture(t)
	archive := kit.ChartArchive(t, "example", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: example, namespace: {{ .Release.Namespace }}}\n")
	f.runControllers(extension.WithPull(func(context.Context, *gardencorev1.OCIRepository, *corev1.Secret, *corev1.Secret) ([]byte, error) {
		return archive, nil
	}))
	one := example[operatorv1alpha1.Extension](t, "extension")
	one.Name = "runtime"
	one.Spec.Deployment.AdmissionDeployment, one.Spec.Deployment.Resources = nil, nil
	kit.Must(t, f.client.Create(t.Context(), one))
	defer f.remove(one)
	f.eventually("without a Garden, Installed", "False/NoGardenFound", func() string { return f.condition(one.Name, operatorv1alpha1.ExtensionInstalled) })
	if found := f.bundles(one.Name); len(found) > 0 {
		t.Errorf("without a Garden, there is %v", found)
	}

	garden := example[operatorv1alpha1.Garden](t, "garden")
	garden.Name, garden.Spec.DNS.Providers[0].SecretRef.Name = "runtime", "runtime-dns"
	kit.Must(t, f.client.Create(t.Context(), garden))
	defer f.remove(garden)
	f.eventually("the bundles of the Extension", "extension-runtime-garden (seed)", func() string { return strings.Join(f.bundles(one.Name), ", ") })

	kit.Change(t, f.client, one, func() { one.Spec.Deployment.ExtensionDeployment.RuntimeClusterValues = nil })
	f.eventually("without values for the runtime cluster, the bundles of the Extension", "", func() string { return strings.Join(f.bundles(one.Name), ", ") })
}

// bundles returns the names of the ManagedResources of an Extension with their classes.
func (f *fixture) bundles(extension string) []string {
	var names []string
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := f.client.List(f.Context(), list, client.InNamespace("garden")); err != nil {
		return []string{err.Error()}
	}
	for i := range list.Items {
		one := &list.Items[i]
		class := "none"
		if one.Spec.Class != nil {
			class = *one.Spec.Class
		}
		if strings.Contains(one.Name, "-"+extension) {
			names = append(names, one.Name+" ("+class+")")
		}
	}
	slices.Sort(names)
	return names
}

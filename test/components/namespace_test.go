package components

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestNamespaceOfAControlPlaneIsProtected checks that not even an administrator of a seed deletes the namespace of a control plane by
// mistake: only with a confirmation, or if the resource-manager does it.
func TestNamespaceOfAControlPlaneIsProtected(t *testing.T) {
	config := shared.Get(t).Config()
	admin, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	kit.Must(t, err)
	for _, object := range objectsIn(t, "../../pkg/component/seedsystem/testdata/one-zone.yaml") {
		if object.GetName() == "gardener-namespace-protection" { // the policy and its binding
			kit.Must(t, admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test")))
		}
	}
	namespace := func(name string, labels map[string]string) *corev1.Namespace {
		created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		kit.Must(t, admin.Create(t.Context(), created))
		return created
	}
	ofShoot := map[string]string{constants.LabelGardenRole: constants.RoleShoot}
	one := namespace("shoot--protected--one", ofShoot)
	kit.Eventually(t, "the deletion by an administrator is denied", func() string {
		err := admin.Delete(t.Context(), one, client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "kubectl annotate namespace shoot--protected--one "+constants.AnnotationConfirmationDeletion+"=true") {
			return kit.TextOf(err)
		}
		return ""
	})
	one.Annotations = map[string]string{constants.AnnotationConfirmationDeletion: "true"}
	kit.Must(t, admin.Update(t.Context(), one))
	kit.Must(t, admin.Delete(t.Context(), one))
	kit.Must(t, admin.Delete(t.Context(), namespace("unprotected", nil)))

	asManager := rest.CopyConfig(config)
	asManager.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:garden:gardener-resource-manager", Groups: []string{"system:masters"}}
	manager, err := client.New(asManager, client.Options{Scheme: scheme.Scheme})
	kit.Must(t, err)
	kit.Must(t, manager.Delete(t.Context(), namespace("shoot--protected--two", ofShoot)))
}

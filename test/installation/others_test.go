package installation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// leavesToOthers checks that gardenlet leaves an extension alone that another operator deploys, whose ControllerDeployment has a type
// of its own: it deploys nothing, adds no finalizer, keeps the conditions of the operator, and only reports whether the extension is
// required.
func (w *world) leavesToOthers() {
	w.Helper()
	w.create(w.garden, &corev1beta1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "custom"}, Type: "example.org/operator"})
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "custom"}}
	registration.Spec.Resources = []corev1beta1.ControllerResource{{Kind: "Extension", Type: "custom"}}
	registration.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{
		Policy: ptr.To(corev1beta1.ControllerDeploymentPolicyAlways), DeploymentRefs: []corev1beta1.DeploymentRef{{Name: "custom"}},
	}
	w.create(w.garden, registration)
	w.eventually("custom", "Required=False NoExtensionObjects")

	found := w.installation("custom")
	before := client.StrategicMergeFrom(found.DeepCopy())
	now := metav1.Now()
	found.Status.Conditions = append(found.Status.Conditions, corev1beta1.Condition{
		Type: corev1beta1.ControllerInstallationInstalled, Status: corev1beta1.ConditionTrue, Reason: "InstallationSuccessful",
		Message: "by its operator", LastTransitionTime: now, LastUpdateTime: now,
	})
	kit.Must(w, w.garden.Status().Patch(w.Context(), found, before))
	kit.Change(w, w.garden, found, func() { metav1.SetMetaDataAnnotation(&found.ObjectMeta, "example.org/seen", "true") })
	const both = "Installed=True InstallationSuccessful, Required=False NoExtensionObjects"
	w.eventually("custom", both)
	key := client.ObjectKey{Namespace: "garden", Name: found.Name}
	if err := w.seed.Get(w.Context(), key, &resourcesv1alpha1.ManagedResource{}); client.IgnoreNotFound(err) != nil || err == nil {
		w.Errorf("gardenlet has deployed the extension of another operator: %v", err)
	}
	if len(found.Finalizers) > 0 {
		w.Errorf("the installation has the finalizers %v", found.Finalizers)
	}
	kit.Must(w, w.garden.Delete(w.Context(), registration))
	kit.EventuallyTrue(w, "the installation is deleted", func() bool { return w.installation("custom") == nil })
}

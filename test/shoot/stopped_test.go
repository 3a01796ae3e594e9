package shoot

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// maintainedWhileFailed checks that a control plane is maintained although its last operation has failed finally: the
// certificate of the API server is renewed and rolled out, and a deleted ManagedResource comes back. No extension is called
// or annotated, and the failure remains in the status.
func (w *world) maintainedWhileFailed(answers *standIn) {
	w.Helper()
	answers.called()
	failure, requests := w.get().Status.LastOperation.DeepCopy(), w.requests()
	var issued corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &issued, client.InNamespace(technical), client.MatchingLabels{constants.LabelSecretsManagerName: "kube-apiserver"}))
	certificate := slices.MaxFunc(issued.Items, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	kit.Change(w, w.seed, &certificate, func() { // it is due for renewal
		certificate.Labels[constants.LabelSecretsManagerValidUntilTime] = certificate.Labels[constants.LabelSecretsManagerIssuedAtTime]
	})
	lost := &resourcesv1alpha1.ManagedResource{}
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: "kube-controller-manager"}, lost))
	kit.Must(w, w.seed.Delete(w.Context(), lost))
	kit.Eventually(w, "the deleted ManagedResource is created again", func() string {
		now := &resourcesv1alpha1.ManagedResource{}
		if err := w.seed.Get(w.Context(), client.ObjectKeyFromObject(lost), now); err != nil || now.UID == lost.UID {
			return fmt.Sprintf("UID %s, %v", now.UID, err)
		}
		return ""
	})
	kit.Eventually(w, "the API server gets another certificate", func() string {
		server := &appsv1.Deployment{}
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: "kube-apiserver"}, server))
		for _, volume := range server.Spec.Template.Spec.Volumes {
			if secret := volume.Secret; secret != nil && secret.SecretName == certificate.Name {
				return "the old certificate " + secret.SecretName + " is mounted"
			}
			if projected := volume.Projected; projected != nil && slices.ContainsFunc(projected.Sources, func(source corev1.VolumeProjection) bool {
				return source.Secret != nil && source.Secret.Name == certificate.Name
			}) {
				return "the old certificate " + certificate.Name + " is projected"
			}
		}
		return ""
	})
	w.expect(answers)
	if now := w.requests(); now != requests {
		w.Errorf("extensions were requested to do something:\n%s\nbefore:\n%s", now, requests)
	}
	if last := w.get().Status.LastOperation; !equality.Semantic.DeepEqual(last, failure) {
		w.Errorf("the last operation is %+v, want %+v", last, failure)
	}
}

// requests returns the times of the last requests to extensions, and the operations that they have not begun.
func (w *world) requests() string {
	w.Helper()
	var extensions extensionsv1alpha1.ExtensionList
	kit.Must(w, w.seed.List(w.Context(), &extensions, client.InNamespace(technical)))
	var found []string
	for _, extension := range extensions.Items {
		found = append(found, fmt.Sprint(extension.Name, extension.Generation, " ",
			extension.Annotations[constants.AnnotationGardenerOperation], extension.Annotations[constants.AnnotationGardenerTimestamp]))
	}
	return strings.Join(found, "\n")
}

package controllerregistration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/references"
)

// TestReferenceProtectionIsReleased checks when the finalizer that several controllers share is removed: only from an object that
// is being deleted or is not observed any more, and only if no object of any kind in the API server refers to it.
func TestReferenceProtectionIsReleased(t *testing.T) {
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "user"}, Helm: &gardencorev1.HelmControllerDeployment{
		OCIRepository: &gardencorev1.OCIRepository{PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}}}}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "user"}}
	seed.Spec.Backup = &corev1beta1.Backup{CredentialsRef: &corev1.ObjectReference{Kind: "Secret", Namespace: "garden", Name: "pull"}}
	shootIn := func(namespace string) *corev1beta1.Shoot {
		name := "pull"
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "user"}}
		shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "a", KubeconfigSecretName: &name}}}
		return shoot
	}
	for name, test := range map[string]struct {
		deleting, unobserved bool
		user                 client.Object
		released             bool
	}{
		"another controller protects it":                   {},
		"in deletion":                                      {deleting: true, released: true},
		"in deletion, new ControllerDeployment":            {deleting: true, user: deployment},
		"in deletion, Seed":                                {deleting: true, user: seed},
		"in deletion, Shoot in its namespace":              {deleting: true, user: shootIn("garden")},
		"in deletion, Shoot in another namespace":          {deleting: true, user: shootIn("garden-dev"), released: true},
		"without its role":                                 {unobserved: true, released: true},
		"without its role, Seed":                           {unobserved: true, user: seed},
		"without its role, deployment that needs the role": {unobserved: true, user: deployment, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, served.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "pull",
				Labels: map[string]string{constants.LabelGardenRole: constants.RoleHelmPullSecret}, Finalizers: []string{constants.FinalizerReferenceProtection, "example.org/other"}}}
			if test.deleting {
				secret.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			if test.unobserved {
				secret.Labels = nil
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret)
			if test.user != nil {
				live = live.WithObjects(test.user)
			}
			uncached := live.Build()
			p := &referenceProtector{kind: references.Secret, controllers: controllers{
				cached: staleCache{uncached, test.unobserved}, uncached: uncached, recorder: events.NewFakeRecorder(1),
			}}
			if _, err := p.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)}); err != nil {
				t.Fatal(err)
			}
			if err := uncached.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			if released := len(secret.Finalizers) == 1; released != test.released {
				t.Errorf("the finalizers are %v", secret.Finalizers)
			}
		})
	}
}

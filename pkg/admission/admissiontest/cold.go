package admissiontest

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// NewColdGarden returns the facts of an API server that has just started: nothing can be read.
func NewColdGarden(now time.Time) *admission.Garden {
	live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return unknown()
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return unknown()
		},
	})
	return &admission.Garden{
		BackupBuckets: cold[*gardencorev1beta1.BackupBucket]{}, CloudProfiles: cold[*gardencorev1beta1.CloudProfile]{},
		ClusterOIDCPresets:      cold[*settingsv1alpha1.ClusterOpenIDConnectPreset]{},
		ControllerRegistrations: cold[*gardencorev1beta1.ControllerRegistration]{}, CredentialsBindings: cold[*securityv1alpha1.CredentialsBinding]{},
		ExposureClasses: cold[*gardencorev1beta1.ExposureClass]{}, ManagedSeeds: cold[*seedmanagementv1alpha1.ManagedSeed]{},
		NamespacedCloudProfiles: cold[*gardencorev1beta1.NamespacedCloudProfile]{}, OIDCPresets: cold[*settingsv1alpha1.OpenIDConnectPreset]{},
		Projects: cold[*gardencorev1beta1.Project]{}, Quotas: cold[*gardencorev1beta1.Quota]{}, SecretBindings: cold[*gardencorev1beta1.SecretBinding]{},
		Seeds: cold[*gardencorev1beta1.Seed]{}, Shoots: cold[*gardencorev1beta1.Shoot]{}, WorkloadIdentities: cold[*securityv1alpha1.WorkloadIdentity]{},
		Secret: func(context.Context, string, string) (*corev1.Secret, error) { return nil, unknown() },
		Live:   live, Kube: live, Now: func() time.Time { return now },
		Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionNoOpinion, "", errors.New("the authorizer cannot be reached")
		}),
	}
}

func unknown() error { return admission.Unavailable("nothing is known yet") }

// cold is a reader before the first objects arrive.
type cold[T client.Object] struct{}

// Get implements admission.Reader.
func (cold[T]) Get(context.Context, string, string) (T, error) {
	var none T
	return none, unknown()
}

// By implements admission.Reader.
func (cold[T]) By(context.Context, admission.Index[T], string) ([]T, error) { return nil, unknown() }

// LiveBy implements admission.Reader.
func (cold[T]) LiveBy(context.Context, admission.Index[T], string) ([]T, error) {
	return nil, unknown()
}

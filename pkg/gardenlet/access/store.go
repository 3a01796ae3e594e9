package access

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

const (
	// keyKubeconfig is the key of Secrets with a kubeconfig.
	keyKubeconfig = "kubeconfig"
	// annotationBootstrapRequest on the kubeconfig Secret is the name of the bootstrap's CertificateSigningRequest until the
	// bootstrap credentials are deleted. A gardenlet that was stopped before that continues from there.
	annotationBootstrapRequest = "gardenlet.gardener.cloud/bootstrap-certificate-signing-request"
	fieldManager               = "gardenlet"
)

// stored is a kubeconfig Secret of the seed.
type stored struct {
	secret *corev1.Secret
	// config is nil if the Secret does not exist or has no kubeconfig yet.
	config *rest.Config
}

// readSecret reads a kubeconfig Secret. A Secret that does not exist is not an error.
func readSecret(ctx context.Context, seed client.Reader, reference *corev1.SecretReference) (stored, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}
	if err := seed.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return stored{}, nil
		}
		return stored{}, fmt.Errorf("read Secret %s of the seed: %w", key, err)
	}
	if len(secret.Data[keyKubeconfig]) == 0 {
		return stored{secret: secret}, nil
	}
	config, err := kubeconfig.Parse(secret.Data[keyKubeconfig])
	if err != nil {
		return stored{}, fmt.Errorf("the key %s of Secret %s of the seed: %w", keyKubeconfig, key, err)
	}
	return stored{secret, config}, nil
}

// writeSecret stores a kubeconfig. It removes a requested operation from the Secret, because storing the kubeconfig
// completes it. bootstrapRequest is the name of the bootstrap's request, or empty.
func writeSecret(
	ctx context.Context, seed client.Client, reference *corev1.SecretReference, before stored, config *rest.Config, bootstrapRequest string,
) error {
	content, err := encode(config)
	if err != nil {
		return fmt.Errorf("encode the kubeconfig for the garden: %w", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name}}
	if before.secret != nil {
		secret = before.secret.DeepCopy()
	}
	data := map[string][]byte{}
	maps.Copy(data, secret.Data)
	data[keyKubeconfig] = content
	secret.Data = data
	delete(secret.Annotations, constants.AnnotationGardenerOperation)
	if bootstrapRequest != "" {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotationBootstrapRequest, bootstrapRequest)
	}
	if before.secret == nil {
		err = seed.Create(ctx, secret, client.FieldOwner(fieldManager))
	} else {
		err = seed.Update(ctx, secret, client.FieldOwner(fieldManager))
	}
	if err != nil {
		return fmt.Errorf("write the kubeconfig for the garden to Secret %s/%s of the seed: %w", reference.Namespace, reference.Name, err)
	}
	return nil
}

// forgetRequest removes the annotation with the name of the bootstrap request.
func forgetRequest(ctx context.Context, seed client.Client, secret *corev1.Secret) error {
	before := secret.DeepCopy()
	delete(secret.Annotations, annotationBootstrapRequest)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := seed.Patch(ctx, secret, patch, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("annotate Secret %s/%s of the seed: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// ErrNoAccess reports that there are no credentials for the garden.
var ErrNoAccess = errors.New("no credentials for the garden")

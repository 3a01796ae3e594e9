package shootvalidator

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// checkAdmissionPlugins checks that the kubeconfig of an admission plugin is among the resources of the Shoot, so that it is copied to
// the Seed, and that its Secret has one.
func checkAdmissionPlugins(ctx context.Context, c *change) error {
	if !differs(c, pluginsWithSecrets) {
		return nil
	}
	for _, name := range pluginsWithSecrets(&c.shoot.Spec) {
		if !refersTo(&c.shoot.Spec, name) {
			return fmt.Errorf("spec.kubernetes.kubeAPIServer.admissionPlugins: add the Secret %q with the kubeconfig of a plugin to spec.resources", name)
		}
		secret, err := c.garden.Secret(ctx, c.request.Namespace, name)
		if apierrors.IsNotFound(err) {
			continue // another plugin reports that
		}
		if err != nil {
			return err
		}
		if len(secret.Data[kubeconfigKey]) == 0 {
			return fmt.Errorf("spec.kubernetes.kubeAPIServer.admissionPlugins: the Secret %q must have the key %q", name, kubeconfigKey)
		}
	}
	return nil
}

// pluginsWithSecrets returns the names of the Secrets with kubeconfigs of admission plugins.
func pluginsWithSecrets(spec *gardencorev1beta1.ShootSpec) []string {
	if spec.Kubernetes.KubeAPIServer == nil {
		return nil
	}
	var names []string
	for i := range spec.Kubernetes.KubeAPIServer.AdmissionPlugins {
		if name := spec.Kubernetes.KubeAPIServer.AdmissionPlugins[i].KubeconfigSecretName; name != nil {
			names = append(names, *name)
		}
	}
	return names
}

func refersTo(spec *gardencorev1beta1.ShootSpec, secret string) bool {
	for i := range spec.Resources {
		if reference := spec.Resources[i].ResourceRef; reference.Kind == "Secret" && reference.APIVersion == "v1" && reference.Name == secret {
			return true
		}
	}
	return false
}

// kubeconfigKey is the key of the kubeconfig in a Secret.
const kubeconfigKey = "kubeconfig"

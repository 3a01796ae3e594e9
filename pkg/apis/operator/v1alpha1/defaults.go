package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaultsGarden sets the defaults of a Garden that its CustomResourceDefinition cannot set, because they depend on
// other fields or are in types that Shoots use, too.
func SetDefaultsGarden(garden *Garden) {
	kubernetes := &garden.Spec.VirtualCluster.Kubernetes
	server := defaulting.Object(&kubernetes.KubeAPIServer)
	gardencorev1beta1.SetDefaultsKubeAPIServerConfig(&server.KubeAPIServerConfig)
	manager := defaulting.Object(&kubernetes.KubeControllerManager)
	defaulting.Pointer(&manager.CertificateSigningDuration, metav1.Duration{Duration: 48 * time.Hour})
	gardener := defaulting.Object(&garden.Spec.VirtualCluster.Gardener.GardenerAPIServer)
	defaulting.Pointer(&defaulting.Object(&gardener.EncryptionConfig).Provider.Type, *server.EncryptionConfig.Provider.Type)
}

// SetDefaultsExtension sets the defaults of an Extension. Extensions that create machines need access to the garden.
func SetDefaultsExtension(extension *Extension) {
	machines := false
	for i := range extension.Spec.Resources {
		gardencorev1beta1.SetDefaultsControllerResource(&extension.Spec.Resources[i])
		machines = machines || extension.Spec.Resources[i].Kind == gardencorev1beta1.KindWorker
	}
	if machines && extension.Spec.Deployment != nil && extension.Spec.Deployment.ExtensionDeployment != nil {
		defaulting.Pointer(&extension.Spec.Deployment.ExtensionDeployment.InjectGardenKubeconfig, true)
	}
}

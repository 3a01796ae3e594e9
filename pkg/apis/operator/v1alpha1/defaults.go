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

// SetDefaultsExtension sets the defaults of an Extension.
func SetDefaultsExtension(extension *Extension) {
	for i := range extension.Spec.Resources {
		gardencorev1beta1.SetDefaultsControllerResource(&extension.Spec.Resources[i])
	}
}

package installation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/helmchart/access"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

const (
	// accessSecretName is the Secret to which the token requestor writes a token for the garden.
	accessSecretName = constants.PrefixGardenAccess + "extension"
	// prefixKubeconfig is the prefix of the name of the Secret with the kubeconfig. A digest of its content follows.
	prefixKubeconfig = "generic-garden-kubeconfig-"
	// labelPodSecurity is the label of Kubernetes' Pod Security admission.
	labelPodSecurity = "pod-security.kubernetes.io/enforce"

	contextName  = "garden"
	digestLength = 8
)

// namespaceName returns the name of an extension's namespace in the seed.
func namespaceName(installation string) string {
	return constants.PrefixExtensionNamespace + installation
}

// accountName returns the name of an extension's ServiceAccount in the garden.
func accountName(installation string) string {
	return constants.PrefixExtensionNamespace + installation
}

// injects reports whether the extension needs access to the garden.
func (in Inputs) injects() bool { return ptr.Deref(in.Deployment.InjectGardenKubeconfig, false) }

// namespace returns the namespace of the extension.
func (in Inputs) namespace() client.Object {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespaceName(in.Installation.Name),
		Labels: map[string]string{
			constants.LabelGardenRole:                 constants.RoleExtension,
			constants.LabelControllerRegistrationName: in.Registration.Name,
			highavailability.LabelConsider:            "true",
		},
		Annotations: map[string]string{highavailability.AnnotationZones: strings.Join(in.Seed.Spec.Provider.Zones, ",")},
	}}
	if level := in.Installation.Annotations[constants.AnnotationPodSecurityEnforce]; level != "" {
		namespace.Labels[labelPodSecurity] = level
	}
	if in.SeedIsGarden {
		namespace.Labels[constants.LabelNetworkPolicyAccessTargetAPIServer] = "allowed"
	}
	return namespace
}

// kubeconfig returns the Secret with the kubeconfig for the garden. It refers to a token in another file of the same volume.
func (in Inputs) kubeconfig() (*corev1.Secret, error) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.CurrentContext = contextName
	kubeconfig.Clusters[contextName] = &in.Garden
	kubeconfig.AuthInfos[contextName] = &clientcmdapi.AuthInfo{TokenFile: constants.GardenKubeconfigMountPath + "/" + access.KeyToken}
	kubeconfig.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	text, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig for the garden: %w", err)
	}
	digest := sha256.Sum256(text)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceName(in.Installation.Name), Name: prefixKubeconfig + hex.EncodeToString(digest[:])[:digestLength],
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{access.KeyKubeconfig: text}, Immutable: ptr.To(true),
	}, nil
}

// access returns the Secret to which gardenlet's token requestor writes a token.
func (in Inputs) access() client.Object {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceName(in.Installation.Name), Name: accessSecretName,
			Labels: map[string]string{
				resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassGarden,
			},
			Annotations: map[string]string{
				resourcesv1alpha1.AnnotationServiceAccountName:      accountName(in.Installation.Name),
				resourcesv1alpha1.AnnotationServiceAccountNamespace: constants.PrefixSeedNamespace + in.Seed.Name,
				resourcesv1alpha1.AnnotationServiceAccountLabels: fmt.Sprintf(
					"{%q:%q}", constants.LabelControllerRegistrationName, in.Registration.Name,
				),
			},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

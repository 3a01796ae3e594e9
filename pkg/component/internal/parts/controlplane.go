package parts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// The file names in the volume of ShootAccess.
const (
	fileKubeconfig = "kubeconfig"
	fileToken      = "token"
)

// The component types with which a webhook of the resource-manager configures high availability.
const (
	TypeServer     = "server"
	TypeController = "controller"
)

// ShootKubeconfig is the path of the kubeconfig of a control plane component for the API server of its shoot.
const ShootKubeconfig = constants.KubeconfigMountPath + "/" + fileKubeconfig

// ControlPlane returns the labels that select the Pods of a control plane component.
func ControlPlane(role string) map[string]string {
	return map[string]string{"app": "kubernetes", "role": role}
}

// ShootAccess returns a volume with the kubeconfig that all control plane components share, and the token of one of
// them. kubeconfig is the Secret of the config generic-token-kubeconfig, access the name of a Secret returned by
// AccessSecret.
func ShootAccess(kubeconfig, access string) (corev1.Volume, corev1.VolumeMount) {
	const volume = "kubeconfig"
	source := func(secret, key, path string) corev1.VolumeProjection {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Optional: ptr.To(false),
			Items: []corev1.KeyToPath{{Key: key, Path: path}},
		}}
	}
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o440), Sources: []corev1.VolumeProjection{
			source(kubeconfig, resourcesv1alpha1.DataKeyKubeconfig, fileKubeconfig), source(access, resourcesv1alpha1.DataKeyToken, fileToken),
		},
	}}}, Mount(volume, constants.KubeconfigMountPath)
}

// Program returns the path of a Kubernetes program in its image. Extensions edit the flags of Gardener's control planes in
// the field command: those that append a flag must find the program there, because the field replaces the entrypoint.
func Program(name string) string { return "/usr/local/bin/" + name }

// AccessSecretName returns the name of the Secret with the token of a control plane component for the API server of its
// shoot.
func AccessSecretName(account string) string { return constants.PrefixShootAccess + account }

// AccessSecret returns the Secret with the token of a control plane component. The token belongs to a ServiceAccount in
// the namespace kube-system of the shoot. The shoot's resource-manager creates the ServiceAccount and renews the token.
func AccessSecret(namespace, account string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: AccessSecretName(account),
			Labels: map[string]string{
				resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor,
				resourcesv1alpha1.LabelClass:   resourcesv1alpha1.ClassShoot,
			},
			Annotations: map[string]string{
				resourcesv1alpha1.AnnotationServiceAccountName:      account,
				resourcesv1alpha1.AnnotationServiceAccountNamespace: metav1.NamespaceSystem,
			},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// Files returns an immutable ConfigMap with files, named after its content.
func Files(namespace, name string, labels, files map[string]string) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: Merge(labels)}, Data: files}
	if err := references.MakeUnique(configMap); err != nil {
		return nil, err
	}
	return configMap, nil
}

// SecretFiles returns an immutable Secret with files, named after its content.
func SecretFiles(namespace, name string, labels map[string]string, files map[string][]byte) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: Merge(labels)}, Data: files, Type: corev1.SecretTypeOpaque,
	}
	if err := references.MakeUnique(secret); err != nil {
		return nil, err
	}
	return secret, nil
}

// Switches returns named switches in the format of a flag, sorted.
func Switches(switches map[string]bool) string {
	list := make([]string, 0, len(switches))
	for _, name := range slices.Sorted(maps.Keys(switches)) {
		list = append(list, fmt.Sprintf("%s=%t", name, switches[name]))
	}
	return strings.Join(list, ",")
}

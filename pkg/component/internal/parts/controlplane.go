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

// The names of the files in the volume of ShootAccess.
const (
	fileKubeconfig = "kubeconfig"
	fileToken      = "token"
)

// The types of components by which a webhook of the resource-manager makes them highly available.
const (
	TypeServer     = "server"
	TypeController = "controller"
)

// ShootKubeconfig is the path of the kubeconfig with which a component of a control plane reaches the API server of its shoot.
const ShootKubeconfig = constants.KubeconfigMountPath + "/" + fileKubeconfig

// ControlPlane are the labels that select the Pods of a component of a control plane.
func ControlPlane(role string) map[string]string {
	return map[string]string{"app": "kubernetes", "role": role}
}

// ShootAccess returns a volume with the kubeconfig that all components of a control plane share, and the token of one of them. The Secrets
// are the one of the config generic-token-kubeconfig, and one that AccessSecret returns.
func ShootAccess(kubeconfig, access string) (corev1.Volume, corev1.VolumeMount) {
	const volume = "kubeconfig"
	source := func(secret, key, path string) corev1.VolumeProjection {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Optional: ptr.To(false), Items: []corev1.KeyToPath{{Key: key, Path: path}},
		}}
	}
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o440), Sources: []corev1.VolumeProjection{
			source(kubeconfig, resourcesv1alpha1.DataKeyKubeconfig, fileKubeconfig), source(access, resourcesv1alpha1.DataKeyToken, fileToken),
		},
	}}}, Mount(volume, constants.KubeconfigMountPath)
}

// AccessSecretName returns the name of the Secret with the token of a component of a control plane for the API server of its shoot.
func AccessSecretName(account string) string { return constants.PrefixShootAccess + account }

// AccessSecret returns the Secret with the token of a component of a control plane, which is that of a ServiceAccount in the namespace
// kube-system of the shoot. The shoot's resource-manager creates the account and keeps the token valid.
func AccessSecret(namespace, account string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: AccessSecretName(account),
			Labels: map[string]string{
				resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot,
			},
			Annotations: map[string]string{
				resourcesv1alpha1.AnnotationServiceAccountName: account, resourcesv1alpha1.AnnotationServiceAccountNamespace: metav1.NamespaceSystem,
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

// Switches returns names that are switched on or off as a flag has them, sorted.
func Switches(switches map[string]bool) string {
	list := make([]string, 0, len(switches))
	for _, name := range slices.Sorted(maps.Keys(switches)) {
		list = append(list, fmt.Sprintf("%s=%t", name, switches[name]))
	}
	return strings.Join(list, ",")
}

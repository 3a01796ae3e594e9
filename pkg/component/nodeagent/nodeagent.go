// Package nodeagent contains what node agents find in a shoot: the Secrets from which they read the configuration of their nodes, and
// the rights with which a new machine becomes a node. It also renders the configuration of the program.
package nodeagent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	nodeagentv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

const (
	// DataKey is the key of the configuration in a Secret.
	DataKey = "osc.yaml"
	// AnnotationChecksum is the SHA-256 of the configuration. A node that has applied it has the same value as an annotation.
	AnnotationChecksum = "checksum/data-script"
	// RoleConfig marks the Secrets.
	RoleConfig = "operating-system-config"

	// tokenPeriod is what Gardener writes. Node agents watch tokens and do not use it.
	tokenPeriod = 12 * time.Hour
)

// Config is the configuration of the nodes with a key.
type Config struct {
	// Key is the name of the Secret, Pool the name of the worker pool.
	Key, Pool string
	// Object is the OperatingSystemConfig as the webhooks of infrastructures have changed it, without references to Secrets.
	Object extensionsv1alpha1.OperatingSystemConfig
}

// Objects returns the objects in the shoot.
func Objects(configs []Config) ([]client.Object, error) {
	var objects []client.Object
	for _, config := range configs {
		secret, err := secretOf(config)
		if err != nil {
			return nil, err
		}
		objects = append(objects, secret)
	}
	for _, each := range []struct{ role, group string }{
		{"system:node-bootstrapper", "system:bootstrappers"},
		{"system:certificates.k8s.io:certificatesigningrequests:nodeclient", "system:bootstrappers"},
		{"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes"},
	} {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: each.role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: each.role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: each.group}},
		})
	}
	return objects, nil
}

// secretOf returns the Secret of a configuration: what a node agent needs of the OperatingSystemConfig, and nothing else, so that
// timestamps of operations do not change it.
func secretOf(config Config) (*corev1.Secret, error) {
	reduced := extensionsv1alpha1.OperatingSystemConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: extensionsv1alpha1.SchemeGroupVersion.String(), Kind: "OperatingSystemConfig"},
	}
	from := config.Object
	reduced.Spec.Purpose, reduced.Spec.CRIConfig, reduced.Spec.InPlaceUpdates = from.Spec.Purpose, from.Spec.CRIConfig, from.Spec.InPlaceUpdates
	reduced.Spec.Units, reduced.Spec.Files = from.Spec.Units, from.Spec.Files
	reduced.Status.ExtensionUnits, reduced.Status.ExtensionFiles = from.Status.ExtensionUnits, from.Status.ExtensionFiles
	reduced.Status.InPlaceUpdates = from.Status.InPlaceUpdates
	text, err := yaml.Marshal(reduced)
	if err != nil {
		return nil, fmt.Errorf("encode the OperatingSystemConfig of pool %s: %w", config.Pool, err)
	}
	sum := sha256.Sum256(text)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: config.Key,
			Labels:      map[string]string{constants.LabelGardenRole: RoleConfig, constants.LabelWorkerPool: config.Pool},
			Annotations: map[string]string{AnnotationChecksum: hex.EncodeToString(sum[:])},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{DataKey: text},
	}, nil
}

// Values are the inputs of the program's configuration.
type Values struct {
	// Server is the URL of the API server.
	Server string
	// SecretName is the name of the Secret with the configuration of the node, KubernetesVersion the version of kubelet.
	SecretName, KubernetesVersion string
	// DataVolume is the size of the data volume of kubelet as a quantity; empty if it has none.
	DataVolume string
}

// Configuration returns the configuration file of the program.
func Configuration(values Values) (string, error) {
	config := &nodeagentv1alpha1.NodeAgentConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: nodeagentv1alpha1.APIVersion, Kind: nodeagentv1alpha1.Kind},
		APIServer: nodeagentv1alpha1.APIServer{Server: values.Server, CAFile: paths.ClusterCA},
	}
	config.Controllers.OperatingSystemConfig.SecretName = values.SecretName
	config.Controllers.OperatingSystemConfig.KubernetesVersion = values.KubernetesVersion
	config.Controllers.Token.SyncPeriod = &metav1.Duration{Duration: tokenPeriod}
	if values.DataVolume != "" {
		size, err := resource.ParseQuantity(values.DataVolume)
		if err != nil {
			return "", fmt.Errorf("the size of the data volume of kubelet %q: %w", values.DataVolume, err)
		}
		config.Bootstrap = &nodeagentv1alpha1.BootstrapConfiguration{KubeletDataVolumeSize: ptr.To(size.Value())}
	}
	nodeagentv1alpha1.SetDefaults(config)
	text, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of the node agent: %w", err)
	}
	return string(text), nil
}

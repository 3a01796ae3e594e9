package gardenletdeployer

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/helmchart"
	"github.com/trellis-k8s/trellis/pkg/helmchart/embedded"
)

const (
	// annotationPolicy and policyKeep mark objects of charts that Helm does not delete.
	annotationPolicy, policyKeep = "helm.sh/resource-policy", "keep"
	// priorityClass is the PriorityClass of gardenlets, which the flow of the Seed takes over.
	priorityClass = "gardener-system-critical"
)

// Objects are the objects of a gardenlet.
type Objects struct {
	// Once are those that are created if they do not exist, and left alone afterwards, because the gardenlet takes them over.
	Once []client.Object
	// Managed are all others.
	Managed []client.Object
}

// Objects renders a chart of gardenlet, for a version of Kubernetes; empty for any. Without an archive, it is the chart of this program.
func (in Inputs) Objects(ctx context.Context, archive []byte, kubeVersion string) (Objects, error) {
	values, err := in.Values()
	if err != nil {
		return Objects{}, err
	}
	release := helmchart.Release{Name: Release, Namespace: in.Namespace}
	var rendered []*unstructured.Unstructured
	if len(archive) > 0 {
		rendered, err = helmchart.Objects(ctx, archive, release, values, kubeVersion)
	} else if loaded, failed := embedded.Load(Release); failed == nil {
		rendered, err = helmchart.ObjectsOf(ctx, loaded, release, values, kubeVersion)
	} else {
		err = failed
	}
	if err != nil {
		return Objects{}, fmt.Errorf("render the chart of gardenlet: %w", err)
	}
	var all Objects
	for _, object := range rendered {
		if object.GetKind() == "Namespace" && object.GetName() == in.Namespace {
			continue // it exists already
		}
		keeps := object.GetAnnotations()[annotationPolicy] == policyKeep
		if keeps || object.GetKind() == "PriorityClass" && object.GetName() == priorityClass {
			all.Once = append(all.Once, object)
			continue
		}
		all.Managed = append(all.Managed, object)
	}
	if in.Bootstrap == v1alpha1.BootstrapNone {
		all.Managed = append(all.Managed, in.secret(gardenSecret, in.GardenKubeconfig))
	}
	return all, nil
}

func (in Inputs) secret(name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: name, Labels: map[string]string{"app": "gardener", "role": "gardenlet"}},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{KeyKubeconfig: kubeconfig},
	}
}

// Namespace returns the namespace of a gardenlet.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{constants.LabelGardenRole: constants.RoleGarden}},
	}
}

// configKey is the key of the configuration in its ConfigMap.
const configKey = "config.yaml"

// configVolumes are the names that the volume with the configuration has in charts.
var configVolumes = map[string]bool{"config": true, "gardenlet-config": true}

// ConfigMapOf returns the name of the ConfigMap with the configuration of a gardenlet; empty if it is not known.
func ConfigMapOf(deployment *appsv1.Deployment) string {
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if configVolumes[volume.Name] && volume.ConfigMap != nil {
			return volume.ConfigMap.Name
		}
	}
	return ""
}

// CheckOwner returns an error if a cluster runs the gardenlet of another Seed. A configuration that cannot be read counts as the own one.
func CheckOwner(configMap *corev1.ConfigMap, seed string) error {
	read := &gardenletv1alpha1.GardenletConfiguration{}
	if err := yaml.Unmarshal([]byte(configMap.Data[configKey]), read); err != nil || read.SeedConfig == nil {
		return nil //nolint:nilerr // it is replaced
	}
	if name := read.SeedConfig.Metadata.Name; name != "" && name != seed {
		return fmt.Errorf("the cluster already runs the gardenlet of Seed %s: delete that Seed and its gardenlet first", name)
	}
	return nil
}

// Package gardenletdeployer computes what a gardenlet consists of that another program deploys: the gardenlet of a ManagedSeed, by the gardenlet
// of the Seed on which its Shoot runs, and the gardenlet that a Gardenlet describes, by the operator and then by itself. It also has the
// credentials with which such a gardenlet requests its certificate. See docs/managed-seeds.md.
package gardenletdeployer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

const (
	// Release is the name of the release, and of the Deployment of a gardenlet.
	Release = "gardenlet"
	// KubeconfigSecret is the Secret in which a gardenlet keeps its kubeconfig.
	KubeconfigSecret = "gardenlet-kubeconfig" //nolint:gosec // a name
	// BootstrapSecret is the Secret with the kubeconfig for its first certificate.
	BootstrapSecret = "gardenlet-kubeconfig-bootstrap" //nolint:gosec // a name
	// gardenSecret is the Secret with the kubeconfig of a gardenlet that requests no certificate. It is mounted as a directory.
	gardenSecret = "gardenlet-kubeconfig-garden" //nolint:gosec // a name
	gardenVolume = "gardenlet-kubeconfig-garden"
	gardenMount  = "/etc/gardenlet/kubeconfig-garden"
	// KeyKubeconfig is the key of these Secrets, and the name of the file.
	KeyKubeconfig = "kubeconfig"

	// envServer is the variable with the address of the API server of the own cluster.
	envServer = "KUBERNETES_SERVICE_HOST"
)

// Inputs are what the objects of a gardenlet follow from.
type Inputs struct {
	// Name of the ManagedSeed or Gardenlet, and of the Seed. Namespace of the gardenlet in its cluster.
	Name, Namespace string
	// Deployment is that of the ManagedSeed or Gardenlet.
	Deployment v1alpha1.GardenletDeployment
	// Config is its configuration in JSON. Parent is that of the gardenlet that deploys, over which Config is merged; empty for none.
	Config, Parent []byte
	// Bootstrap is how the gardenlet gets its first credentials. GardenKubeconfig is its kubeconfig for the garden if it requests none.
	Bootstrap        v1alpha1.Bootstrap
	GardenKubeconfig []byte
	// Image is the reference of the image that the deployment does not name; empty for that of the chart.
	Image string
	// ImageOverwrites and ComponentImageOverwrites replace images, in YAML.
	ImageOverwrites, ComponentImageOverwrites string
	// APIServerHost is the host name at which the gardenlet reaches the API server of its cluster; empty for the Service of the cluster.
	APIServerHost string
	// GardenAddress is the URL of the garden if the configuration has none; empty for that of the kubeconfig.
	GardenAddress string
	// PodLabels and PodAnnotations are added to those of the deployment.
	PodLabels, PodAnnotations map[string]string
}

// Values returns the values for the chart of gardenlet. They are in the form of JSON.
func (in Inputs) Values() (map[string]any, error) {
	config, err := in.config()
	if err != nil {
		return nil, err
	}
	deployment := in.Deployment.DeepCopy()
	deployment.Image = image(deployment.Image, in.Image)
	deployment.PodLabels = merged(deployment.PodLabels, in.PodLabels)
	deployment.PodAnnotations = merged(deployment.PodAnnotations, in.PodAnnotations)
	hasServer := slices.ContainsFunc(deployment.Env, func(variable corev1.EnvVar) bool { return variable.Name == envServer })
	if in.APIServerHost != "" && !hasServer {
		deployment.Env = append(deployment.Env, corev1.EnvVar{Name: envServer, Value: in.APIServerHost})
	}
	if in.Bootstrap == v1alpha1.BootstrapNone {
		deployment.AdditionalVolumes = append(deployment.AdditionalVolumes, corev1.Volume{Name: gardenVolume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: gardenSecret},
		}})
		deployment.AdditionalVolumeMounts = append(deployment.AdditionalVolumeMounts, corev1.VolumeMount{
			Name: gardenVolume, MountPath: gardenMount, ReadOnly: true,
		})
	}
	values, err := tree(deployment)
	if err != nil {
		return nil, err
	}
	values["config"] = config
	for name, text := range map[string]string{
		"imageVectorOverwrite": in.ImageOverwrites, "componentImageVectorOverwrites": in.ComponentImageOverwrites,
	} {
		if text != "" {
			values[name] = text
		}
	}
	return values, nil
}

// merged returns labels or annotations with others, which take precedence; nil if there are none.
func merged(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	all := maps.Clone(base)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, over)
	return all
}

// image returns the image of a deployment. What the deployment does not set is that of the reference.
func image(given *v1alpha1.Image, reference string) *v1alpha1.Image {
	result := &v1alpha1.Image{}
	if given != nil {
		result = given.DeepCopy()
	}
	if reference == "" || result.Ref != nil {
		return result
	}
	if result.Repository == nil && result.Tag == nil {
		result.Ref = ptr.To(reference)
		return result
	}
	repository, tag := splitReference(reference)
	if result.Repository == nil {
		result.Repository = ptr.To(repository)
	}
	if result.Tag == nil && tag != "" {
		result.Tag = ptr.To(tag)
	}
	return result
}

// splitReference splits the reference of an image into its repository, and its tag or digest.
func splitReference(reference string) (repository, tag string) {
	if repository, digest, found := strings.Cut(reference, "@"); found {
		return repository, digest
	}
	if at := strings.LastIndex(reference, ":"); at > strings.LastIndex(reference, "/") {
		return reference[:at], reference[at+1:]
	}
	return reference, ""
}

// Reference returns the reference of an image with a tag, unless it has a tag or a digest.
func Reference(reference, version string) string {
	if _, tag := splitReference(reference); tag != "" {
		return reference
	}
	return reference + ":" + version
}

// tree returns an object in the form of JSON.
func tree(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode the values of the chart: %w", err)
	}
	return decoded(text)
}

// decoded decodes a JSON object.
func decoded(text []byte) (map[string]any, error) {
	var result map[string]any
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("decode the configuration: %w", err)
	}
	if result == nil {
		return nil, errors.New("the configuration is not a JSON object")
	}
	return result, nil
}

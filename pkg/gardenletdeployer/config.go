package gardenletdeployer

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/helmchart/values"
)

// Fields of the configuration.
const (
	fieldGarden     = "gardenClientConnection"
	fieldSeed       = "seedClientConnection"
	fieldSeedConfig = "seedConfig"
	fieldBootstrap  = "bootstrapKubeconfig"
	fieldStored     = "kubeconfigSecret"
	fieldKubeconfig = "kubeconfig"
	fieldAddress    = "gardenClusterAddress"
)

// config returns the complete configuration of the gardenlet.
func (in Inputs) config() (map[string]any, error) {
	config, err := in.mergedConfig()
	if err != nil {
		return nil, err
	}
	if config["apiVersion"] == nil {
		config["apiVersion"], config["kind"] = gardenletv1alpha1.APIVersion, gardenletv1alpha1.Kind
	}
	if seed, _ := config[fieldSeedConfig].(map[string]any); len(seed) == 0 {
		return nil, errors.New("the configuration has no seedConfig: set it to the Seed that the gardenlet registers")
	}
	set := setter{config: config}
	set.at(in.Name, fieldSeedConfig, "metadata", "name")
	set.at(in.Namespace, "leaderElection", "resourceNamespace")
	if file, _, _ := unstructured.NestedString(config, fieldSeed, fieldKubeconfig); file != "" {
		return nil, fmt.Errorf("%s.%s names the file %s, which the gardenlet does not have: leave it out, so that it uses its ServiceAccount",
			fieldSeed, fieldKubeconfig, file)
	}
	if address, _, _ := unstructured.NestedString(config, fieldGarden, fieldAddress); address == "" && in.GardenAddress != "" {
		set.at(in.GardenAddress, fieldGarden, fieldAddress)
	}
	if in.Bootstrap == v1alpha1.BootstrapNone {
		unstructured.RemoveNestedField(config, fieldGarden, fieldBootstrap)
		unstructured.RemoveNestedField(config, fieldGarden, fieldStored)
		set.at(gardenMount+"/"+KeyKubeconfig, fieldGarden, fieldKubeconfig)
		return config, set.err
	}
	unstructured.RemoveNestedField(config, fieldGarden, fieldKubeconfig)
	for field, name := range map[string]string{fieldBootstrap: BootstrapSecret, fieldStored: KubeconfigSecret} {
		set.at(map[string]any{"name": name, "namespace": in.Namespace}, fieldGarden, field)
	}
	return config, set.err
}

// mergedConfig returns the given configuration, over that of the parent if there is one. Of the parent, it has neither the Seed nor
// connections.
func (in Inputs) mergedConfig() (map[string]any, error) {
	own := map[string]any{}
	if len(in.Config) > 0 {
		var err error
		if own, err = decoded(in.Config); err != nil {
			return nil, err
		}
	}
	if len(in.Parent) == 0 {
		return own, nil
	}
	all, err := decoded(in.Parent)
	if err != nil {
		return nil, err
	}
	for _, path := range [][]string{
		{fieldGarden, fieldBootstrap}, {fieldGarden, fieldStored}, {fieldGarden, fieldKubeconfig}, {fieldSeed, fieldKubeconfig}, {fieldSeedConfig},
	} {
		unstructured.RemoveNestedField(all, path...)
	}
	values.Merge(all, own)
	return all, nil
}

// setter sets fields, and keeps the first error.
type setter struct {
	config map[string]any
	err    error
}

func (s *setter) at(value any, path ...string) {
	if err := unstructured.SetNestedField(s.config, value, path...); err != nil && s.err == nil {
		s.err = fmt.Errorf("the configuration: %w", err)
	}
}

// GardenKubeconfigPath returns the path of gardenClientConnection.kubeconfig in a configuration, or else in that of its parent; empty if
// there is none.
func GardenKubeconfigPath(config, parent []byte) string {
	for _, text := range [][]byte{config, parent} {
		var read struct {
			GardenClientConnection struct {
				Kubeconfig string `json:"kubeconfig"`
			} `json:"gardenClientConnection"`
		}
		if len(text) > 0 && json.Unmarshal(text, &read) == nil && read.GardenClientConnection.Kubeconfig != "" {
			return read.GardenClientConnection.Kubeconfig
		}
	}
	return ""
}

// Seed returns the Seed in a configuration with its defaults, or nil if there is none.
func Seed(config []byte) (*corev1beta1.SeedTemplate, error) {
	var read struct {
		SeedConfig *corev1beta1.SeedTemplate `json:"seedConfig"`
	}
	if len(config) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(config, &read); err != nil {
		return nil, fmt.Errorf("decode the configuration: %w", err)
	}
	if read.SeedConfig != nil {
		corev1beta1.SetDefaultsSeedSpec(&read.SeedConfig.Spec)
	}
	return read.SeedConfig, nil
}

package installation

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/confidential"
)

// resourceTemplate matches references to data of resources in values.
var resourceTemplate = regexp.MustCompile(`\{\{-?\s*\.resources\.([a-zA-Z0-9]+)\.data\.([-._a-zA-Z0-9]+?)\s*-?\}\}`)

// values returns the values of the chart: those of the deployment, overridden by the values that gardenlet provides.
func (in Inputs) values() (map[string]any, error) {
	values := map[string]any{}
	if given := in.Deployment.Helm.Values; given != nil && len(given.Raw) > 0 {
		if err := json.Unmarshal(given.Raw, &values); err != nil {
			return nil, fmt.Errorf("values of ControllerDeployment %s are not a JSON object", in.Deployment.Name)
		}
	}
	filled, err := in.fill(values)
	if err != nil {
		return nil, err
	}
	known, err := in.known()
	if err != nil {
		return nil, err
	}
	values, ok := filled.(map[string]any)
	if !ok {
		values = map[string]any{} // the deployment has null as values
	}
	merge(values, map[string]any{"gardener": known})
	return values, nil
}

// fill replaces references to data of resources in all strings.
func (in Inputs) fill(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return in.fillText(value)
	case []any:
		for i := range value {
			filled, err := in.fill(value[i])
			if err != nil {
				return nil, err
			}
			value[i] = filled
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			filled, err := in.fill(value[key])
			if err != nil {
				return nil, err
			}
			value[key] = filled
		}
	}
	return value, nil
}

// fillText replaces references to data of resources in one string.
func (in Inputs) fillText(text string) (string, error) {
	var missing error
	filled := resourceTemplate.ReplaceAllStringFunc(text, func(match string) string {
		parts := resourceTemplate.FindStringSubmatch(match)
		data, found := in.Resources[parts[1]]
		content, has := data[parts[2]]
		switch {
		case !found:
			missing = fmt.Errorf(
				"a value refers to %s, and %s is not in the resources of ControllerDeployment %s", match, parts[1], in.Deployment.Name,
			)
		case !has:
			missing = fmt.Errorf(
				"a value refers to %s, and the resource %s of ControllerDeployment %s has no key %s", match, parts[1], in.Deployment.Name,
				parts[2],
			)
		}
		return content
	})
	return filled, missing
}

// redact removes data of Secrets that are part of the values from a text, in any form in which errors repeat it.
func (in Inputs) redact(text string) string {
	const shortest = 4 // replacing shorter values would make the text unreadable and hide nothing
	var values []string
	for name, data := range in.Resources {
		if !in.Confidential[name] {
			continue
		}
		for _, content := range data {
			values = append(values, content)
		}
	}
	return confidential.Text(text, values, shortest)
}

// Values that all charts get in the field gardener.
type (
	knownValues struct {
		Version   string         `json:"version"`
		Garden    knownGarden    `json:"garden"`
		Gardenlet knownGardenlet `json:"gardenlet"`
		Seed      knownSeed      `json:"seed"`
	}
	knownGarden struct {
		ClusterIdentity             string `json:"clusterIdentity"`
		GenericKubeconfigSecretName string `json:"genericKubeconfigSecretName,omitempty"`
	}
	knownGardenlet struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	knownSeed struct {
		Name            string                           `json:"name"`
		ClusterIdentity string                           `json:"clusterIdentity"`
		Annotations     map[string]string                `json:"annotations"`
		Labels          map[string]string                `json:"labels"`
		Provider        string                           `json:"provider"`
		Region          string                           `json:"region"`
		VolumeProvider  string                           `json:"volumeProvider"`
		VolumeProviders []corev1beta1.SeedVolumeProvider `json:"volumeProviders"`
		IngressDomain   string                           `json:"ingressDomain"`
		Protected       bool                             `json:"protected"`
		Visible         bool                             `json:"visible"`
		Taints          []corev1beta1.SeedTaint          `json:"taints"`
		Networks        corev1beta1.SeedNetworks         `json:"networks"`
		BlockCIDRs      []string                         `json:"blockCIDRs"`
		Spec            corev1beta1.SeedSpec             `json:"spec"`
	}
)

// known returns the values that all charts get in the field gardener.
func (in Inputs) known() (map[string]any, error) {
	seed := in.Seed
	values := knownValues{
		Version: in.Version, Garden: knownGarden{ClusterIdentity: in.GardenIdentity}, Gardenlet: knownGardenlet{in.FeatureGates},
		Seed: knownSeed{
			Name: seed.Name, ClusterIdentity: ptr.Deref(seed.Status.ClusterIdentity, ""), Annotations: ownAnnotations(seed), Labels: seed.Labels,
			Provider: seed.Spec.Provider.Type, Region: seed.Spec.Provider.Region, Taints: seed.Spec.Taints, Networks: seed.Spec.Networks,
			BlockCIDRs: seed.Spec.Networks.BlockCIDRs, Spec: seed.Spec, Visible: true,
			Protected: slices.ContainsFunc(
				seed.Spec.Taints, func(taint corev1beta1.SeedTaint) bool { return taint.Key == constants.TaintSeedProtected },
			),
		},
	}
	if seed.Spec.Ingress != nil {
		values.Seed.IngressDomain = seed.Spec.Ingress.Domain
	}
	if seed.Spec.Settings != nil && seed.Spec.Settings.Scheduling != nil {
		values.Seed.Visible = seed.Spec.Settings.Scheduling.Visible
	}
	if volume := seed.Spec.Volume; volume != nil && len(volume.Providers) > 0 {
		values.Seed.VolumeProvider, values.Seed.VolumeProviders = volume.Providers[0].Name, volume.Providers
	}
	if in.injects() {
		secret, err := in.kubeconfig()
		if err != nil {
			return nil, err
		}
		values.Garden.GenericKubeconfigSecretName = secret.Name
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encode the values for charts: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("decode the values for charts: %w", err)
	}
	return tree, nil
}

// ownAnnotations returns the annotations without operations, which are temporary, and without the one of kubectl apply.
func ownAnnotations(seed *corev1beta1.Seed) map[string]string {
	annotations := maps.Clone(seed.Annotations)
	delete(annotations, constants.AnnotationGardenerOperation)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return annotations
}

// merge puts values over others. Objects are merged recursively. Other values are replaced.
func merge(into, over map[string]any) {
	for key, value := range over {
		before, ok := into[key].(map[string]any)
		after, same := value.(map[string]any)
		if ok && same {
			merge(before, after)
			continue
		}
		into[key] = value
	}
}

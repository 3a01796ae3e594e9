package installation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/helmchart/values"
)

// values returns the values of the chart: those of the deployment, overridden by the values that gardenlet provides.
func (in Inputs) values() (map[string]any, error) {
	var given []byte
	if in.Deployment.Helm.Values != nil {
		given = in.Deployment.Helm.Values.Raw
	}
	all, err := in.resources().Decode(given)
	if err != nil {
		return nil, err
	}
	known, err := in.known()
	if err != nil {
		return nil, err
	}
	values.Merge(all, map[string]any{"gardener": known})
	return all, nil
}

// resources returns the data to which the values may refer.
func (in Inputs) resources() values.Resources {
	return values.Resources{Data: in.Resources, Confidential: in.Confidential, Of: "ControllerDeployment " + in.Deployment.Name}
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
		// Identifier is the UID of the namespace garden, by which charts identified a garden before ClusterIdentity existed.
		Identifier                  string `json:"identifier"`
		ClusterIdentity             string `json:"clusterIdentity"`
		GenericKubeconfigSecretName string `json:"genericKubeconfigSecretName,omitempty"`
	}
	knownGardenlet struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	knownSeed struct {
		// Identifier is the former name of Name.
		Identifier      string                           `json:"identifier"`
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
	content := knownValues{
		Version: in.Version, Gardenlet: knownGardenlet{in.FeatureGates},
		Garden: knownGarden{Identifier: in.GardenUID, ClusterIdentity: in.GardenIdentity},
		Seed: knownSeed{
			Identifier: seed.Name, Name: seed.Name, ClusterIdentity: ptr.Deref(seed.Status.ClusterIdentity, ""), Annotations: ownAnnotations(seed), Labels: seed.Labels,
			Provider: seed.Spec.Provider.Type, Region: seed.Spec.Provider.Region, Taints: seed.Spec.Taints, Networks: seed.Spec.Networks,
			BlockCIDRs: seed.Spec.Networks.BlockCIDRs, Spec: seed.Spec, Visible: true,
			Protected: slices.ContainsFunc(
				seed.Spec.Taints, func(taint corev1beta1.SeedTaint) bool { return taint.Key == constants.TaintSeedProtected },
			),
		},
	}
	if seed.Spec.Ingress != nil {
		content.Seed.IngressDomain = seed.Spec.Ingress.Domain
	}
	if seed.Spec.Settings != nil && seed.Spec.Settings.Scheduling != nil {
		content.Seed.Visible = seed.Spec.Settings.Scheduling.Visible
	}
	if volume := seed.Spec.Volume; volume != nil && len(volume.Providers) > 0 {
		content.Seed.VolumeProvider, content.Seed.VolumeProviders = volume.Providers[0].Name, volume.Providers
	}
	if in.injects() {
		secret, err := in.kubeconfig()
		if err != nil {
			return nil, err
		}
		content.Garden.GenericKubeconfigSecretName = secret.Name
	}
	text, err := json.Marshal(content)
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

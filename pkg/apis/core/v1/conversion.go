package v1

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Annotations with the data of a v1beta1 ControllerDeployment that this version cannot represent otherwise.
const (
	// AnnotationMigrationType is the type, if it is not helm.
	AnnotationMigrationType = "migration.controllerdeployment.gardener.cloud/type"
	// AnnotationMigrationProviderConfig is the configuration of such a type.
	AnnotationMigrationProviderConfig = "migration.controllerdeployment.gardener.cloud/providerConfig"
)

// annotationResources contains, in v1beta1, the references that this version has a field for.
const annotationResources = "migration.controllerdeployment.gardener.cloud/resources"

// helmDeployment is the configuration of the type helm in v1beta1.
type helmDeployment struct {
	// Chart is the chart, as a compressed archive.
	Chart []byte `json:"chart,omitempty"`
	// Values are the values of the chart.
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// OCIRepository is the OCI artifact with the chart.
	OCIRepository *OCIRepository `json:"ociRepository,omitempty"`
}

// RegisterConversions adds the conversions between this package's ControllerDeployment and that of v1beta1 to a scheme, and
// those between their lists.
func RegisterConversions(scheme *runtime.Scheme) error {
	return errors.Join(
		register(scheme, ConvertToV1beta1),
		register(scheme, ConvertFromV1beta1),
		register(scheme, func(from *ControllerDeploymentList, to *v1beta1.ControllerDeploymentList) (err error) {
			to.ListMeta = from.ListMeta
			to.Items, err = convertItems(from.Items, ConvertToV1beta1)
			return err
		}),
		register(scheme, func(from *v1beta1.ControllerDeploymentList, to *ControllerDeploymentList) (err error) {
			to.ListMeta = from.ListMeta
			to.Items, err = convertItems(from.Items, ConvertFromV1beta1)
			return err
		}),
	)
}

func register[From, To any](scheme *runtime.Scheme, convert func(*From, *To) error) error {
	return scheme.AddConversionFunc((*From)(nil), (*To)(nil), func(from, to any, _ conversion.Scope) error {
		return convert(from.(*From), to.(*To)) //nolint:errcheck // types as registered
	})
}

func convertItems[From, To any](items []From, convert func(*From, *To) error) ([]To, error) {
	converted := make([]To, len(items))
	for i := range items {
		if err := convert(&items[i], &converted[i]); err != nil {
			return nil, err
		}
	}
	return converted, nil
}

// ConvertToV1beta1 converts a ControllerDeployment to v1beta1. A chart becomes the configuration of the type helm. The
// result shares no memory with its input.
func ConvertToV1beta1(from *ControllerDeployment, to *v1beta1.ControllerDeployment) error {
	in := from.DeepCopy()
	*to = v1beta1.ControllerDeployment{ObjectMeta: in.ObjectMeta, InjectGardenKubeconfig: in.InjectGardenKubeconfig}
	if len(in.Resources) > 0 {
		resources, err := json.Marshal(in.Resources)
		if err != nil {
			return fmt.Errorf("resources of ControllerDeployment %s: %w", in.Name, err)
		}
		to.Annotations = with(to.Annotations, annotationResources, string(resources))
	}
	if in.Helm == nil {
		to.Type = in.Annotations[AnnotationMigrationType]
		if config, found := in.Annotations[AnnotationMigrationProviderConfig]; found {
			to.ProviderConfig.Raw = []byte(config)
		}
		to.Annotations = without(to.Annotations, AnnotationMigrationType, AnnotationMigrationProviderConfig)
		return nil
	}
	raw, err := json.Marshal(helmDeployment{Chart: in.Helm.RawChart, Values: in.Helm.Values, OCIRepository: in.Helm.OCIRepository})
	if err != nil {
		return fmt.Errorf("chart of ControllerDeployment %s: %w", in.Name, err)
	}
	to.Type, to.ProviderConfig.Raw = v1beta1.ControllerDeploymentTypeHelm, raw
	return nil
}

// ConvertFromV1beta1 converts a ControllerDeployment from v1beta1. The configuration of the type helm becomes a chart.
// Other types and their configurations become annotations. The result shares no memory with its input.
func ConvertFromV1beta1(from *v1beta1.ControllerDeployment, to *ControllerDeployment) error {
	in := from.DeepCopy()
	*to = ControllerDeployment{ObjectMeta: in.ObjectMeta, InjectGardenKubeconfig: in.InjectGardenKubeconfig}
	if resources, found := in.Annotations[annotationResources]; found {
		if err := json.Unmarshal([]byte(resources), &to.Resources); err != nil {
			return fmt.Errorf("annotation %s of ControllerDeployment %s: %w", annotationResources, in.Name, err)
		}
		to.Annotations = without(to.Annotations, annotationResources)
	}
	if in.Type != v1beta1.ControllerDeploymentTypeHelm {
		if in.Type != "" {
			to.Annotations = with(to.Annotations, AnnotationMigrationType, in.Type)
		}
		if len(in.ProviderConfig.Raw) > 0 {
			to.Annotations = with(to.Annotations, AnnotationMigrationProviderConfig, string(in.ProviderConfig.Raw))
		}
		return nil
	}
	var helm helmDeployment
	if len(in.ProviderConfig.Raw) > 0 {
		if err := json.Unmarshal(in.ProviderConfig.Raw, &helm); err != nil {
			return fmt.Errorf("providerConfig of ControllerDeployment %s: %w", in.Name, err)
		}
	}
	to.Helm = &HelmControllerDeployment{RawChart: helm.Chart, Values: helm.Values, OCIRepository: helm.OCIRepository}
	return nil
}

func with(annotations map[string]string, key, value string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	return annotations
}

func without(annotations map[string]string, keys ...string) map[string]string {
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		for _, one := range keys {
			if key == one {
				return true
			}
		}
		return false
	})
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

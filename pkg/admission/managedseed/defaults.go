package managedseed

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/json"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// value is a value for a field of seedConfig.spec, with the segments of its path separated by dots.
type value struct {
	path  string
	value any
}

type values []value

// add adds a value that is not empty if the Seed has none.
func (v *values) add(missing bool, path string, text string) {
	if missing && text != "" {
		*v = append(*v, value{path, text})
	}
}

// defaults returns the values that a Seed lacks, from its Shoot.
func defaults(ctx context.Context, garden *admission.Garden, shoot *gardencorev1beta1.Shoot, spec *gardencorev1beta1.SeedSpec) (values, error) {
	found := &values{}
	found.add(spec.Provider.Type == "", "provider.type", shoot.Spec.Provider.Type)
	found.add(spec.Provider.Region == "", "provider.region", shoot.Spec.Region)
	found.add(spec.Backup != nil && spec.Backup.Provider == "", "backup.provider", shoot.Spec.Provider.Type)
	found.add(spec.Ingress == nil || spec.Ingress.Domain == "", "ingress.domain", ingressDomain(shoot))
	found.add(spec.Ingress == nil || spec.Ingress.Controller.Kind == "", "ingress.controller.kind", "nginx")
	if networking := shoot.Spec.Networking; networking != nil {
		found.add(ptr.Deref(spec.Networks.Nodes, "") == "", "networks.nodes", ptr.Deref(networking.Nodes, ""))
		found.add(spec.Networks.Pods == "", "networks.pods", ptr.Deref(networking.Pods, ""))
		found.add(spec.Networks.Services == "", "networks.services", ptr.Deref(networking.Services, ""))
	}
	if spec.Settings == nil || spec.Settings.VerticalPodAutoscaler == nil {
		*found = append(*found, value{"settings.verticalPodAutoscaler.enabled", false})
	}
	if zones := admission.Zones(&shoot.Spec); len(spec.Provider.Zones) == 0 && len(zones) > 0 {
		list := []any{}
		for _, zone := range zones {
			list = append(list, zone)
		}
		*found = append(*found, value{"provider.zones", list})
	}
	if spec.DNS.Provider != nil {
		return *found, nil
	}
	provider, err := dnsProvider(ctx, garden, shoot)
	if err == nil && provider != nil {
		*found = append(*found, value{"dns.provider", provider})
	}
	return *found, err
}

// dnsProvider returns the account for the records of a Shoot's domain: that of its primary provider, or else that of its default
// domain; nil if it has neither.
func dnsProvider(ctx context.Context, garden *admission.Garden, shoot *gardencorev1beta1.Shoot) (map[string]any, error) {
	if primary := admission.PrimaryProvider(shoot.Spec.DNS); primary != nil {
		if reference := primary.CredentialsRef; reference != nil {
			return provider(ptr.Deref(primary.Type, ""), reference.APIVersion, reference.Kind, reference.Name), nil
		}
		if name := ptr.Deref(primary.SecretName, ""); name != "" {
			return provider(ptr.Deref(primary.Type, ""), corev1.SchemeGroupVersion.String(), "Secret", name), nil
		}
		return nil, nil
	}
	secrets, err := garden.SecretsOfGarden(ctx, constants.LabelGardenRole, constants.RoleDefaultDomain)
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		if domain := secret.Annotations[constants.AnnotationDNSDomain]; domain != "" && strings.HasSuffix(domainOf(shoot), "."+domain) {
			return provider(secret.Annotations[constants.AnnotationDNSProvider], corev1.SchemeGroupVersion.String(), "Secret", secret.Name), nil
		}
	}
	return nil, nil
}

func provider(typed, version, kind, name string) map[string]any {
	return map[string]any{"type": typed, "credentialsRef": map[string]any{
		"apiVersion": version, "kind": kind, "name": name, "namespace": constants.GardenNamespace,
	}}
}

// writeTo writes values into the configuration of a gardenlet. All other fields stay as they are, also unknown ones.
func (v values) writeTo(raw *runtime.RawExtension) error {
	configuration := map[string]any{}
	if len(raw.Raw) > 0 {
		if err := json.UnmarshalCaseSensitivePreserveInts(raw.Raw, &configuration); err != nil {
			return fmt.Errorf("%s: %w", configField, err)
		}
	}
	for _, one := range v {
		path := append([]string{"seedConfig", "spec"}, strings.Split(one.path, ".")...)
		if err := unstructured.SetNestedField(configuration, one.value, path...); err != nil {
			return fmt.Errorf("%s: %w", configField, err)
		}
	}
	encoded, err := stdjson.Marshal(configuration)
	if err != nil {
		return fmt.Errorf("%s: %w", configField, err)
	}
	*raw = runtime.RawExtension{Raw: encoded}
	return nil
}

// labelHost labels a ManagedSeed with the Seed that hosts its Shoot, so that the gardenlet there can select it.
func labelHost(seed *seedmanagementv1alpha1.ManagedSeed, shoot *gardencorev1beta1.Shoot) {
	maps.DeleteFunc(seed.Labels, func(key, _ string) bool { return strings.HasPrefix(key, constants.LabelPrefixSeedName) })
	if host := ptr.Deref(shoot.Spec.SeedName, ""); host != "" {
		if seed.Labels == nil {
			seed.Labels = map[string]string{}
		}
		seed.Labels[constants.LabelPrefixSeedName+host] = "true"
	}
}

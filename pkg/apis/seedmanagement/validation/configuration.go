package validation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apimachineryvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/json"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Identity of a gardenlet's configuration.
const (
	configurationVersion = "gardenlet.config.gardener.cloud/v1alpha1"
	configurationKind    = "GardenletConfiguration"
)

// Bounds of values in a gardenlet's configuration.
const (
	leastKubeconfigValidity = 10 * time.Minute
	leastRecordTTL          = 30
	mostRecordTTL           = 600
)

// configuration has the fields of a GardenletConfiguration that have rules.
type configuration struct {
	metav1.TypeMeta `json:",inline"`

	LogLevel             string           `json:"logLevel"`
	LogFormat            string           `json:"logFormat"`
	Connection           gardenConnection `json:"gardenClientConnection"`
	Resources            seedResources    `json:"resources"`
	ExposureClassHandler []struct {
		Name string `json:"name"`
	} `json:"exposureClassHandlers"`
	Controllers struct {
		BackupEntry struct {
			GracePeriodHours    *int                             `json:"deletionGracePeriodHours"`
			GracePeriodPurposes []gardencorev1beta1.ShootPurpose `json:"deletionGracePeriodShootPurposes"`
		} `json:"backupEntry"`
		Shoot struct {
			RecordTTL *int64 `json:"dnsEntryTTLSeconds"`
		} `json:"shoot"`
	} `json:"controllers"`
	SeedConfig *runtime.RawExtension `json:"seedConfig"`
}

// gardenConnection says how a gardenlet connects to the garden.
type gardenConnection struct {
	Kubeconfig          string                  `json:"kubeconfig"`
	BootstrapKubeconfig *corev1.SecretReference `json:"bootstrapKubeconfig"`
	KubeconfigSecret    *corev1.SecretReference `json:"kubeconfigSecret"`
	KubeconfigValidity  *struct {
		Validity         *metav1.Duration `json:"validity"`
		JitterPercentMin *int32           `json:"autoRotationJitterPercentageMin"`
		JitterPercentMax *int32           `json:"autoRotationJitterPercentageMax"`
	} `json:"kubeconfigValidity"`
}

// seedResources are what a Seed has.
type seedResources struct {
	Capacity corev1.ResourceList `json:"capacity"`
	Reserved corev1.ResourceList `json:"reserved"`
}

// connection is how the gardenlet with a configuration gets its credentials for the garden.
type connection struct {
	bootstrap v1alpha1.Bootstrap
	// merged is true if the configuration is merged over that of another gardenlet, so that values may come from there.
	merged bool
}

// validateConfiguration checks the configuration of a gardenlet. Fields without a rule are not read.
func validateConfiguration(raw []byte, c connection, path *field.Path) field.ErrorList {
	read, err := readConfiguration(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "(configuration)", fmt.Sprintf("must be a %s: %v", configurationKind, err))}
	}
	errs := rules.OneOf(read.APIVersion, path.Child("apiVersion"), configurationVersion)
	errs = append(errs, rules.OneOf(read.Kind, path.Child("kind"), configurationKind)...)
	if read.LogLevel != "" {
		errs = append(errs, rules.OneOf(read.LogLevel, path.Child("logLevel"), "info", "debug", "error")...)
	}
	if read.LogFormat != "" {
		errs = append(errs, rules.OneOf(read.LogFormat, path.Child("logFormat"), "json", "text")...)
	}
	errs = append(errs, validateConnection(&read.Connection, c, path.Child("gardenClientConnection"))...)
	errs = append(errs, validateResources(&read.Resources, path.Child("resources"))...)
	errs = append(errs, validateControllers(read, path.Child("controllers"))...)
	for i, handler := range read.ExposureClassHandler {
		at := path.Child("exposureClassHandlers").Index(i).Child("name")
		errs = append(errs, rules.Messages(apimachineryvalidation.IsDNS1123Label(handler.Name), handler.Name, at)...)
	}
	return append(errs, validateSeedConfig(read.SeedConfig, path.Child("seedConfig"))...)
}

func readConfiguration(raw []byte) (*configuration, error) {
	read := &configuration{}
	return read, json.UnmarshalCaseSensitivePreserveInts(raw, read)
}

func validateConnection(given *gardenConnection, c connection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.bootstrap == v1alpha1.BootstrapNone {
		if given.Kubeconfig == "" && !c.merged {
			errs = append(errs, field.Required(path.Child("kubeconfig"), "the gardenlet gets no credentials otherwise"))
		}
		for name, set := range map[string]bool{"bootstrapKubeconfig": given.BootstrapKubeconfig != nil, "kubeconfigSecret": given.KubeconfigSecret != nil} {
			if set {
				errs = append(errs, field.Forbidden(path.Child(name), "must not be set without bootstrap"))
			}
		}
	} else if given.Kubeconfig != "" {
		errs = append(errs, field.Forbidden(path.Child("kubeconfig"), fmt.Sprintf("must not be set with bootstrap %s", c.bootstrap)))
	}
	if given.KubeconfigValidity == nil {
		return errs
	}
	validity, at := given.KubeconfigValidity, path.Child("kubeconfigValidity")
	if validity.Validity != nil && validity.Validity.Duration < leastKubeconfigValidity {
		errs = append(errs, field.Invalid(at.Child("validity"), validity.Validity.Duration.String(), "must be at least 10m"))
	}
	least, most := ptr.Deref(validity.JitterPercentMin, 70), ptr.Deref(validity.JitterPercentMax, 90)
	if least < 1 || least >= most {
		errs = append(errs, field.Invalid(at.Child("autoRotationJitterPercentageMin"), least, "must be at least 1 and less than autoRotationJitterPercentageMax"))
	}
	if most > 100 {
		errs = append(errs, field.Invalid(at.Child("autoRotationJitterPercentageMax"), most, "must be at most 100"))
	}
	return errs
}

func validateResources(given *seedResources, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, reserved := range given.Reserved {
		at := path.Child("reserved").Key(string(name))
		capacity, found := given.Capacity[name]
		switch {
		case !found:
			errs = append(errs, field.Invalid(at, reserved.String(), "must be in capacity, too"))
		case reserved.Cmp(capacity) > 0:
			errs = append(errs, field.Invalid(at, reserved.String(), fmt.Sprintf("must not be more than the capacity, %s", capacity.String())))
		}
	}
	return errs
}

func validateControllers(read *configuration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	backups, at := &read.Controllers.BackupEntry, path.Child("backupEntry")
	hours := ptr.Deref(backups.GracePeriodHours, 0)
	if hours < 0 {
		errs = append(errs, field.Invalid(at.Child("deletionGracePeriodHours"), hours, "must not be negative"))
	}
	purposes := at.Child("deletionGracePeriodShootPurposes")
	if len(backups.GracePeriodPurposes) > 0 && hours <= 0 {
		errs = append(errs, field.Forbidden(purposes, "needs deletionGracePeriodHours"))
	}
	known := []gardencorev1beta1.ShootPurpose{
		gardencorev1beta1.ShootPurposeEvaluation, gardencorev1beta1.ShootPurposeTesting, gardencorev1beta1.ShootPurposeDevelopment,
		gardencorev1beta1.ShootPurposeProduction, gardencorev1beta1.ShootPurposeInfrastructure,
	}
	for i, purpose := range backups.GracePeriodPurposes {
		if !slices.Contains(known, purpose) {
			errs = append(errs, field.NotSupported(purposes.Index(i), purpose, known))
		}
	}
	if ttl := read.Controllers.Shoot.RecordTTL; ttl != nil && (*ttl < leastRecordTTL || *ttl > mostRecordTTL) {
		errs = append(errs, field.Invalid(path.Child("shoot", "dnsEntryTTLSeconds"), *ttl, fmt.Sprintf("must be between %d and %d", leastRecordTTL, mostRecordTTL)))
	}
	return errs
}

// validateSeedConfig checks the Seed that the gardenlet registers. Its name is that of the object.
func validateSeedConfig(raw *runtime.RawExtension, path *field.Path) field.ErrorList {
	template, err := seedTemplate(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "(seed)", err.Error())}
	}
	if template == nil {
		return nil
	}
	var errs field.ErrorList
	if template.Metadata.Name != "" {
		errs = append(errs, field.Forbidden(path.Child("metadata", "name"), "the name of the Seed is that of the object"))
	}
	return append(errs, validation.ValidateSeedTemplate(template, path)...)
}

// seedTemplate reads the Seed of a configuration strictly; nil if there is none.
func seedTemplate(raw *runtime.RawExtension) (*gardencorev1beta1.SeedTemplate, error) {
	if raw == nil || len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil, nil
	}
	template := &gardencorev1beta1.SeedTemplate{}
	strict, err := json.UnmarshalStrict(raw.Raw, template)
	if err != nil {
		return nil, err
	}
	return template, errors.Join(strict...)
}

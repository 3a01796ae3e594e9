// Package config reads the configuration file of a node agent.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/configfile"
)

// minPeriod and minStuck are the minimum durations between two checks, and until a unit is stuck.
const (
	minPeriod = 15 * time.Second
	minStuck  = 30 * time.Second
)

// format is how the file is read.
var format = configfile.Format[v1alpha1.NodeAgentConfiguration]{Kind: v1alpha1.Kind, SetDefaults: v1alpha1.SetDefaults, Validate: validate}

// Load reads, defaults and validates the configuration file at path. The error lists everything that is wrong, with the paths of the fields.
func Load(path string) (*v1alpha1.NodeAgentConfiguration, error) { return format.Load(path) }

// Parse decodes, defaults and validates a configuration in YAML or JSON. Decoding is strict: unknown fields and keys that are set twice are
// errors.
func Parse(data []byte) (*v1alpha1.NodeAgentConfiguration, error) { return format.Parse(data) }

// Find returns the path of the configuration file in a directory: config-<version>.yaml if it exists, so that a new program does not read a file
// that was written for another one, and otherwise config.yaml.
func Find(directory, version string) (string, error) {
	own := filepath.Join(directory, "config-"+version+".yaml")
	if _, err := os.Stat(own); err == nil {
		return own, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find the configuration file: %w", err)
	}
	return filepath.Join(directory, "config.yaml"), nil
}

// validation collects the mistakes of a configuration.
type validation struct{ errs field.ErrorList }

func (v *validation) oneOf(path *field.Path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.errs = append(v.errs, field.NotSupported(path, value, allowed))
	}
}

func (v *validation) required(path *field.Path, value, detail string) {
	if value == "" {
		v.errs = append(v.errs, field.Required(path, detail))
	}
}

func (v *validation) atLeast(path *field.Path, value *metav1.Duration, least time.Duration) {
	if value.Duration < least {
		v.errs = append(v.errs, field.Invalid(path, value.Duration.String(), "must be at least "+least.String()))
	}
}

func (v *validation) absolute(path *field.Path, value string) {
	if !filepath.IsAbs(value) || filepath.Clean(value) != value {
		v.errs = append(v.errs, field.Invalid(path, value, "must be an absolute path"))
	}
}

// validate checks a configuration with its defaults.
func validate(c *v1alpha1.NodeAgentConfiguration) field.ErrorList {
	v := &validation{}
	v.oneOf(field.NewPath("apiVersion"), c.APIVersion, v1alpha1.APIVersion)
	v.oneOf(field.NewPath("kind"), c.Kind, v1alpha1.Kind)
	v.oneOf(field.NewPath("logLevel"), c.LogLevel, "info", "debug", "error")
	v.oneOf(field.NewPath("logFormat"), c.LogFormat, "json", "text")
	server := field.NewPath("apiServer", "server")
	if u, err := url.Parse(c.APIServer.Server); err != nil || u.Scheme != "https" || u.Host == "" {
		v.errs = append(v.errs, field.Invalid(server, c.APIServer.Server, "must be the https URL of the API server"))
	}
	v.absolute(field.NewPath("apiServer", "caFile"), c.APIServer.CAFile)
	if b := c.Bootstrap; b != nil && b.KubeletDataVolumeSize != nil && *b.KubeletDataVolumeSize < 1 {
		v.errs = append(v.errs, field.Invalid(field.NewPath("bootstrap", "kubeletDataVolumeSize"), *b.KubeletDataVolumeSize, "must be at least 1"))
	}
	v.controllers(field.NewPath("controllers"), &c.Controllers)
	return v.errs
}

func (v *validation) controllers(path *field.Path, c *v1alpha1.ControllerConfiguration) {
	osc := path.Child("operatingSystemConfig")
	v.atLeast(osc.Child("syncPeriod"), c.OperatingSystemConfig.SyncPeriod, minPeriod)
	v.required(osc.Child("secretName"), c.OperatingSystemConfig.SecretName, "name the Secret with the OperatingSystemConfig")
	if _, err := semver.StrictNewVersion(c.OperatingSystemConfig.KubernetesVersion); err != nil {
		v.errs = append(v.errs, field.Invalid(osc.Child("kubernetesVersion"), c.OperatingSystemConfig.KubernetesVersion, "must be a version such as 1.36.2"))
	}
	token := path.Child("token")
	v.atLeast(token.Child("syncPeriod"), c.Token.SyncPeriod, minPeriod)
	seen := sets.New[string]()
	for i, sync := range c.Token.SyncConfigs {
		at := token.Child("syncConfigs").Index(i)
		v.required(at.Child("secretName"), sync.SecretName, "name the Secret with the token")
		v.absolute(at.Child("path"), sync.Path)
		if seen.Has(sync.Path) {
			v.errs = append(v.errs, field.Duplicate(at.Child("path"), sync.Path))
		}
		seen.Insert(sync.Path)
	}
	check := path.Child("systemdUnitCheck")
	v.atLeast(check.Child("syncPeriod"), c.SystemdUnitCheck.SyncPeriod, minPeriod)
	v.atLeast(check.Child("stuckThreshold"), c.SystemdUnitCheck.StuckThreshold, minStuck)
}

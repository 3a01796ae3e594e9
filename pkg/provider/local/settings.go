package local

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Settings are the settings that are specific to this extension.
type Settings struct {
	Machines Machines
	// DNSZones are the served domains, without a trailing dot. DNSConfigMap contains their zone files.
	DNSZones     []string
	DNSConfigMap client.ObjectKey
	// BackupDirectory contains the buckets. It is empty if there are none. BackupHostPath is its path on nodes.
	BackupDirectory, BackupHostPath string

	environment []string
	configMap   string
}

// AddFlags adds the flags for the settings.
func (s *Settings) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&s.Machines.Simulated, "simulate-machines", false,
		"create Nodes that KWOK simulates instead of machines, on a control plane without kubelets")
	flags.StringArrayVar(&s.environment, "machine-env", nil, "environment variable NAME=VALUE of all machines; can be repeated")
	flags.StringSliceVar(&s.DNSZones, "dns-zones", []string{"local.gardener.cloud"}, "domains whose records are served")
	flags.StringVar(&s.configMap, "dns-configmap", "kube-system/"+Name+"-zones", "namespace and name of the ConfigMap with the zone files")
	flags.StringVar(&s.BackupDirectory, "backup-directory", "", "directory with the buckets for backups")
	flags.StringVar(&s.BackupHostPath, "backup-host-path", "", "path of this directory on the nodes of the seed")
}

// Complete validates the flags and computes the settings.
func (s *Settings) Complete() error {
	var errs []error
	for _, one := range s.environment {
		name, value, found := strings.Cut(one, "=")
		if !found || len(validation.IsEnvVarName(name)) > 0 {
			errs = append(errs, fmt.Errorf("--machine-env %q must be NAME=VALUE", one))
			continue
		}
		s.Machines.Environment = append(s.Machines.Environment, corev1.EnvVar{Name: name, Value: value})
	}
	for i, zone := range s.DNSZones {
		s.DNSZones[i] = strings.ToLower(strings.TrimSuffix(zone, "."))
		if problems := validation.IsDNS1123Subdomain(s.DNSZones[i]); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--dns-zones: %q is not a domain: %s", zone, strings.Join(problems, ", ")))
		}
	}
	namespace, name, found := strings.Cut(s.configMap, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		errs = append(errs, fmt.Errorf("--dns-configmap %q must be <namespace>/<name>", s.configMap))
	}
	s.DNSConfigMap = client.ObjectKey{Namespace: namespace, Name: name}
	return errors.Join(errs...)
}

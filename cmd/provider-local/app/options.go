package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension/heartbeat"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// The limits of API requests, per second and at once.
const (
	defaultQPS   = 100
	defaultBurst = 130
)

// common are the common settings of the commands. The flags have the same names as in Gardener's extensions.
type common struct {
	kubeconfig, namespace  string
	healthAddress          string
	metricsAddress         string
	logLevel, logFormat    string
	leaderElection         bool
	leaderElectionID       string
	webhookPort            int
	webhookURL             string
	webhookService         string
	leaseDuration          time.Duration
	renewDeadline, retries time.Duration
}

func (c *common) addFlags(flags *pflag.FlagSet, id string) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "file for the connection to the cluster; empty in a Pod of it")
	flags.StringVar(&c.namespace, "namespace", "", "namespace of the extension, with its leases and certificates")
	flags.StringVar(&c.healthAddress, "health-bind-address", ":8081", "address that serves /healthz and /readyz; 0 for none")
	flags.StringVar(&c.metricsAddress, "metrics-bind-address", ":8080", "address that serves /metrics; 0 for none")
	flags.StringVar(&c.logLevel, "log-level", "info", "debug, info or error")
	flags.StringVar(&c.logFormat, "log-format", "json", "json or text")
	flags.BoolVar(&c.leaderElection, "leader-election", true, "elect a leader, which alone is active")
	flags.StringVar(&c.leaderElectionID, "leader-election-id", id, "name of the lease of the leader")
	flags.DurationVar(&c.leaseDuration, "leader-election-lease-duration", 15*time.Second, "time after which another process takes over")
	flags.DurationVar(&c.renewDeadline, "leader-election-renew-deadline", 10*time.Second, "time in which the leader has to renew its lease")
	flags.DurationVar(&c.retries, "leader-election-retry-period", 2*time.Second, "time between two attempts")
	flags.IntVar(&c.webhookPort, "webhook-config-server-port", 10250, "port of the webhook server")
	flags.StringVar(&c.webhookURL, "webhook-config-url", "", "URL by which API servers reach the webhook server; empty for its Service")
	flags.StringVar(&c.webhookService, "webhook-config-service", "", "name of this Service; empty for gardener-extension-"+id)
}

func (c *common) validate() error {
	var errs []error
	if c.namespace == "" {
		errs = append(errs, errors.New("--namespace is not set: name the namespace of the extension"))
	}
	if !slices.Contains([]string{"debug", "info", "error"}, c.logLevel) {
		errs = append(errs, fmt.Errorf("--log-level %q must be debug, info or error", c.logLevel))
	}
	if !slices.Contains([]string{"json", "text"}, c.logFormat) {
		errs = append(errs, fmt.Errorf("--log-format %q must be json or text", c.logFormat))
	}
	if c.leaseDuration <= c.renewDeadline || c.renewDeadline <= c.retries || c.retries <= 0 {
		errs = append(errs, errors.New("--leader-election-lease-duration must be greater than --leader-election-renew-deadline, "+
			"which must be greater than --leader-election-retry-period"))
	}
	return errors.Join(errs...)
}

func (c *common) election() *componentbaseconfigv1alpha1.LeaderElectionConfiguration {
	return &componentbaseconfigv1alpha1.LeaderElectionConfiguration{
		LeaderElect: ptr.To(c.leaderElection), ResourceLock: "leases", ResourceNamespace: c.namespace, ResourceName: c.leaderElectionID,
		LeaseDuration: metav1.Duration{Duration: c.leaseDuration}, RenewDeadline: metav1.Duration{Duration: c.renewDeadline},
		RetryPeriod: metav1.Duration{Duration: c.retries},
	}
}

// controllersOptions are the settings of the controllers command.
type controllersOptions struct {
	common

	settings          local.Settings
	classes, disabled []string
	disabledWebhooks  []string
	ignoreOperation   bool
	workers           int
	heartbeat         int
}

func (o *controllersOptions) addFlags(flags *pflag.FlagSet) {
	o.common.addFlags(flags, local.Name)
	o.settings.AddFlags(flags)
	flags.StringSliceVar(&o.classes, "extension-classes", []string{"shoot", "seed"}, "classes of extension resources: shoot, seed, garden")
	flags.StringSliceVar(&o.disabled, "disable-controllers", nil, "controllers that do not run: kinds in lower case")
	flags.StringSliceVar(&o.disabledWebhooks, "disable-webhooks", nil, "webhooks that are not served: controlplane, controlplaneexposure")
	flags.BoolVar(&o.ignoreOperation, "ignore-operation-annotation", false, "reconcile whenever the generation changes, without gardenlet")
	flags.IntVar(&o.workers, "max-concurrent-reconciles", 5, "number of objects of a kind that are reconciled concurrently")
	flags.IntVar(&o.heartbeat, "heartbeat-renew-interval-seconds", int(heartbeat.DefaultPeriod/time.Second), "seconds between two heartbeats")
}

func (o *controllersOptions) complete() error {
	o.settings.Machines.Namespace = o.namespace
	errs := []error{o.validate(), o.settings.Complete()}
	known := sets.New(extensionsv1alpha1.ExtensionClassShoot, extensionsv1alpha1.ExtensionClassSeed, extensionsv1alpha1.ExtensionClassGarden)
	for _, class := range o.classes {
		if !known.Has(extensionsv1alpha1.ExtensionClass(class)) {
			errs = append(errs, fmt.Errorf("--extension-classes: no class %q exists: choose from %s", class, joined(sets.List(known))))
		}
	}
	if o.workers < 1 || o.heartbeat < 1 {
		errs = append(errs, errors.New("--max-concurrent-reconciles and --heartbeat-renew-interval-seconds must be at least 1"))
	}
	return errors.Join(errs...)
}

func joined(classes []extensionsv1alpha1.ExtensionClass) string {
	texts := make([]string, 0, len(classes))
	for _, class := range classes {
		texts = append(texts, string(class))
	}
	return strings.Join(texts, ", ")
}

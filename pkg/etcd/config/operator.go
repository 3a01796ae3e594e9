// Package config contains the configuration files of the etcd operator and of its members. Decoding is strict: unknown
// fields and duplicate keys are errors.
package config

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/configfile"
)

// APIVersion of both files.
const APIVersion = "etcdoperator.config.gardener.cloud/v1alpha1"

// KindOperator is the kind of the operator's configuration file.
const KindOperator = "EtcdOperatorConfiguration"

// Operator is the configuration of the operator.
type Operator struct {
	metav1.TypeMeta `json:",inline"`

	// ClientConnection configures the connection to the cluster with the Etcds.
	ClientConnection ClientConnection `json:"clientConnection"`
	// LeaderElection configures the election of the active replica. Defaults: leaderElect true, the Lease etcd-operator in
	// the namespace garden, and the timings 15s, 10s and 2s of client-go.
	LeaderElection componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection"`
	// Server holds the addresses on which the process listens.
	Server Server `json:"server"`
	// LogLevel is the least severe level that is logged: debug, info or error. Default: info.
	LogLevel string `json:"logLevel"`
	// LogFormat is the format of a log line: json or text. Default: json.
	LogFormat string `json:"logFormat"`
	// MemberImage is the image of members, with the programs etcd-member and etcd. An Etcd with spec.etcd.image uses that
	// image instead. Required.
	MemberImage string `json:"memberImage"`
	// Controllers configures the controllers.
	Controllers Controllers `json:"controllers"`
}

// ClientConnection configures the connection to a cluster.
type ClientConnection struct {
	// Kubeconfig is the path of a kubeconfig. Default: empty, for the cluster in which the process runs.
	Kubeconfig string `json:"kubeconfig"`
	// QPS is the allowed number of requests per second; negative for no limit. Default: 100.
	QPS float32 `json:"qps"`
	// Burst is the allowed burst of requests above QPS. Default: 130.
	Burst int `json:"burst"`
}

// Server holds the addresses on which the process listens.
type Server struct {
	// HealthProbes serves /healthz and /readyz. Default port: 8081.
	HealthProbes Address `json:"healthProbes"`
	// Metrics serves /metrics. Default port: 8080.
	Metrics Address `json:"metrics"`
}

// Address is a listen address.
type Address struct {
	// BindAddress is an IP address. Default: empty, for all addresses.
	BindAddress string `json:"bindAddress"`
	Port        int    `json:"port"`
}

// Controllers configures the controllers.
type Controllers struct {
	// Etcd configures the controller of Etcds.
	Etcd EtcdController `json:"etcd"`
}

// EtcdController configures the controller of Etcds.
type EtcdController struct {
	// ConcurrentSyncs is the number of Etcds that are reconciled concurrently. Default: 5.
	ConcurrentSyncs int `json:"concurrentSyncs"`
	// EnableEtcdSpecAutoReconcile applies each change of a spec immediately. Default: false, which requires the annotation
	// gardener.cloud/operation=reconcile.
	EnableEtcdSpecAutoReconcile bool `json:"enableEtcdSpecAutoReconcile"`
	// ResourceClass is the class of the emitted ManagedResources. Default: seed.
	ResourceClass string `json:"resourceClass"`
}

// LoadOperator reads, defaults and validates the file at path. The error lists all violations.
func LoadOperator(path string) (*Operator, error) {
	return configfile.Format[Operator]{Kind: KindOperator, SetDefaults: (*Operator).setDefaults, Validate: (*Operator).validate}.Load(path)
}

func (c *Operator) setDefaults() {
	c.ClientConnection.QPS = cmp.Or(c.ClientConnection.QPS, 100)
	c.ClientConnection.Burst = cmp.Or(c.ClientConnection.Burst, 130)
	election := &c.LeaderElection
	if election.LeaderElect == nil {
		election.LeaderElect = ptr.To(true)
	}
	election.ResourceLock = cmp.Or(election.ResourceLock, resourcelock.LeasesResourceLock)
	election.ResourceName = cmp.Or(election.ResourceName, "etcd-operator")
	election.ResourceNamespace = cmp.Or(election.ResourceNamespace, "garden")
	election.LeaseDuration = cmp.Or(election.LeaseDuration, metav1.Duration{Duration: 15 * time.Second})
	election.RenewDeadline = cmp.Or(election.RenewDeadline, metav1.Duration{Duration: 10 * time.Second})
	election.RetryPeriod = cmp.Or(election.RetryPeriod, metav1.Duration{Duration: 2 * time.Second})
	c.Server.HealthProbes.Port = cmp.Or(c.Server.HealthProbes.Port, 8081)
	c.Server.Metrics.Port = cmp.Or(c.Server.Metrics.Port, 8080)
	c.LogLevel, c.LogFormat = cmp.Or(c.LogLevel, "info"), cmp.Or(c.LogFormat, "json")
	c.Controllers.Etcd.ConcurrentSyncs = cmp.Or(c.Controllers.Etcd.ConcurrentSyncs, 5)
	c.Controllers.Etcd.ResourceClass = cmp.Or(c.Controllers.Etcd.ResourceClass, "seed")
}

func (c *Operator) validate() field.ErrorList {
	errs := validateKind(c.TypeMeta, KindOperator)
	if c.MemberImage == "" {
		errs = append(errs, field.Required(field.NewPath("memberImage"), "must be set to the image of members"))
	}
	errs = append(errs, oneOf(field.NewPath("logLevel"), c.LogLevel, "debug", "info", "error")...)
	errs = append(errs, oneOf(field.NewPath("logFormat"), c.LogFormat, "json", "text")...)
	if c.Controllers.Etcd.ConcurrentSyncs < 1 {
		path := field.NewPath("controllers", "etcd", "concurrentSyncs")
		errs = append(errs, field.Invalid(path, c.Controllers.Etcd.ConcurrentSyncs, "must be at least 1"))
	}
	if c.ClientConnection.Burst < 0 {
		errs = append(errs, field.Invalid(field.NewPath("clientConnection", "burst"), c.ClientConnection.Burst, "must be at least 0"))
	}
	errs = append(errs, validatePort(field.NewPath("server", "healthProbes", "port"), c.Server.HealthProbes.Port)...)
	errs = append(errs, validatePort(field.NewPath("server", "metrics", "port"), c.Server.Metrics.Port)...)
	election, path := c.LeaderElection, field.NewPath("leaderElection")
	errs = append(errs, oneOf(path.Child("resourceLock"), election.ResourceLock, resourcelock.LeasesResourceLock)...)
	if *election.LeaderElect && election.LeaseDuration.Duration <= election.RenewDeadline.Duration {
		errs = append(errs, field.Invalid(path.Child("leaseDuration"), election.LeaseDuration.Duration.String(),
			"must be longer than renewDeadline"))
	}
	if *election.LeaderElect && (election.RetryPeriod.Duration <= 0 || election.RenewDeadline.Duration <= election.RetryPeriod.Duration) {
		errs = append(errs, field.Invalid(path.Child("renewDeadline"), election.RenewDeadline.Duration.String(),
			"must be longer than retryPeriod, which must be above 0"))
	}
	return errs
}

func validateKind(meta metav1.TypeMeta, kind string) field.ErrorList {
	errs := oneOf(field.NewPath("apiVersion"), meta.APIVersion, APIVersion)
	return append(errs, oneOf(field.NewPath("kind"), meta.Kind, kind)...)
}

func oneOf(path *field.Path, value string, allowed ...string) field.ErrorList {
	for _, one := range allowed {
		if value == one {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func validatePort(path *field.Path, port int) field.ErrorList {
	if port < 1 || port > 65535 {
		return field.ErrorList{field.Invalid(path, port, "must be a port, from 1 to 65535")}
	}
	return nil
}

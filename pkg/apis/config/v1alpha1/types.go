package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// The values of logLevel and logFormat.
const (
	LogLevelDebug = "debug"
	LogLevelInfo  = "info"
	LogLevelError = "error"

	LogFormatJSON = "json"
	LogFormatText = "text"
)

// ResourceManagerConfiguration is the content of the file in the flag --config.
//
// +kubebuilder:object:root=true
type ResourceManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// SourceClientConnection configures the connection to the source cluster, which has the ManagedResources and Secrets.
	SourceClientConnection ClientConnection `json:"sourceClientConnection"`
	// TargetClientConnection configures the connection to the target cluster, which has the applied objects. Default: an
	// object of defaults, never nil, so that source and target always have separate caches.
	// +optional
	TargetClientConnection *ClientConnection `json:"targetClientConnection,omitempty"`
	// LeaderElection selects the replica that runs the controllers. Webhooks are served by every replica. Defaults:
	// leaderElect true, leaseDuration 15s, renewDeadline 10s, retryPeriod 2s (component-base); resourceLock "leases",
	// resourceName "gardener-resource-manager"; no default for resourceNamespace. Rules, only while leaderElect is true:
	// all durations above zero, leaseDuration above renewDeadline, lock, name and namespace set (component-base);
	// renewDeadline at least retryPeriod.
	LeaderElection componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection"`
	// Server configures the addresses on which the process listens.
	Server ServerConfiguration `json:"server"`
	// Debugging serves Go's profiles on the metrics port. Defaults: enableProfiling false,
	// enableContentionProfiling false.
	Debugging componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging"`
	// LogLevel is the least severe level that is logged. Default: "info". Rule: one of debug, info, error.
	LogLevel string `json:"logLevel"`
	// LogFormat is the format of log lines. Default: "json". Rule: one of json, text.
	LogFormat string `json:"logFormat"`
	// Controllers configures the controllers, which run in the leader.
	Controllers ControllersConfiguration `json:"controllers"`
	// Webhooks configures the admission and authorization webhooks.
	Webhooks WebhooksConfiguration `json:"webhooks"`
}

// ClientConnection configures the connection to one cluster and its caches.
//
// The embedded fields are: kubeconfig, a path, empty for the cluster in which the process runs; acceptContentTypes and
// contentType, empty for the client's defaults; qps, requests per second, default 100, a negative number disables
// throttling; burst, requests, default 130, rule: at least 0 (component-base). Zero counts as unset for qps and burst.
type ClientConnection struct {
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`

	// Namespaces restricts caches, controllers and webhooks to these namespaces. Default: empty, which means all.
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// CacheResyncPeriod is the interval at which the caches resend every object to the controllers. Default: 24h. Rule: at
	// least 10s.
	// +optional
	CacheResyncPeriod *metav1.Duration `json:"cacheResyncPeriod,omitempty"`
}

// ServerConfiguration configures the addresses on which the process listens.
type ServerConfiguration struct {
	// Webhooks is the HTTPS server of the webhooks. Default port: 9449.
	Webhooks HTTPSServer `json:"webhooks"`
	// HealthProbes serves /healthz and /readyz. Default: not nil; port 8081. Rule: set.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`
	// Metrics serves /metrics and, if enabled, Go's profiles. Default: not nil; port 8080. Rule: set.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`
	// UI serves the page about ManagedResources over HTTPS, with the permissions of each viewer (docs/ui.md). Default:
	// nil, which disables it. Default port: 8443. Trellis adds this field.
	// +optional
	UI *UIServer `json:"ui,omitempty"`
}

// UIServer is an address that serves the page.
type UIServer struct {
	// Rules: bindAddress is an IP address or empty; port is not that of another server of the process.
	Server `json:",inline"`

	// TLS configures the server's certificate. Default: that of the webhooks if any is enabled, otherwise one that each
	// process generates.
	TLS UICertificate `json:"tls"`
}

// UICertificate is the location of a certificate that another program renews.
type UICertificate struct {
	// ServerCertDir is the directory with tls.crt and tls.key, which are reloaded when they change. Default: empty.
	ServerCertDir string `json:"serverCertDir"`
}

// Server is an address to listen on.
type Server struct {
	// BindAddress is the IP address to listen on. Default: empty, which means all addresses.
	BindAddress string `json:"bindAddress"`
	// Port is the TCP port to listen on; zero counts as unset. Default: see ServerConfiguration. Rule: at least 0; at most
	// 65535 (Trellis: higher ports do not exist).
	Port int `json:"port"`
}

// HTTPSServer is an address to listen on, with a certificate.
type HTTPSServer struct {
	Server `json:",inline"`

	// TLS configures the server's certificate.
	TLS TLSServer `json:"tls"`
}

// TLSServer configures a server's certificate.
type TLSServer struct {
	// ServerCertDir is the directory with tls.crt and tls.key. Default: empty.
	ServerCertDir string `json:"serverCertDir"`
	// SelfManaged makes the resource-manager generate and renew its certificate. Default: nil. Rule: not together with
	// serverCertDir. Trellis adds this field.
	// +optional
	SelfManaged *SelfManagedCertificate `json:"selfManaged,omitempty"`
}

// SelfManagedCertificate configures a certificate that the resource-manager generates: where it is stored, and who must
// trust it.
type SelfManagedCertificate struct {
	// SecretNamespace and SecretName name the Secret of the source cluster that holds certificates and keys.
	// Rule: not empty.
	SecretNamespace string `json:"secretNamespace"`
	SecretName      string `json:"secretName"`
	// DNSNames are the names by which API servers reach the webhooks. Rule: at least one; DNS names (RFC 1123) with an
	// optional prefix "*.".
	DNSNames []string `json:"dnsNames"`
	// WebhookConfigurations are the names of the MutatingWebhookConfigurations and ValidatingWebhookConfigurations of the
	// target cluster that receive the CA bundle. Default: gardener-resource-manager.
	// +optional
	WebhookConfigurations []string `json:"webhookConfigurations,omitempty"`
}

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

// ResourceManagerConfiguration is the content of the file that --config names.
//
// +kubebuilder:object:root=true
type ResourceManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// SourceClientConnection says how to reach the source cluster, which holds ManagedResources and Secrets.
	SourceClientConnection ClientConnection `json:"sourceClientConnection"`
	// TargetClientConnection says how to reach the target cluster, which holds the applied objects.
	// Default: an object of defaults, never nil, so that source and target always have caches of their own.
	// +optional
	TargetClientConnection *ClientConnection `json:"targetClientConnection,omitempty"`
	// LeaderElection decides which replica runs the controllers; webhooks are served by every replica.
	// Defaults: leaderElect true, leaseDuration 15s, renewDeadline 10s, retryPeriod 2s (component-base);
	// resourceLock "leases", resourceName "gardener-resource-manager"; resourceNamespace has none.
	// Rules, only while leaderElect is true: all durations above zero, leaseDuration above renewDeadline, lock,
	// name and namespace set (component-base); renewDeadline at least retryPeriod.
	LeaderElection componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection"`
	// Server holds the addresses on which the process listens.
	Server ServerConfiguration `json:"server"`
	// Debugging serves Go's profiles on the metrics port. Defaults: enableProfiling false,
	// enableContentionProfiling false.
	Debugging componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging"`
	// LogLevel is the least severe level that is logged. Default: "info". Rule: one of debug, info, error.
	LogLevel string `json:"logLevel"`
	// LogFormat is the form of a log line. Default: "json". Rule: one of json, text.
	LogFormat string `json:"logFormat"`
	// Controllers configures what runs on the leader.
	Controllers ControllersConfiguration `json:"controllers"`
	// Webhooks configures the admission and authorization webhooks.
	Webhooks WebhooksConfiguration `json:"webhooks"`
}

// ClientConnection says how to reach one cluster and how much of it is cached.
//
// The embedded fields are: kubeconfig, a path, empty for the cluster in which the process runs; acceptContentTypes
// and contentType, empty for the client's own choice; qps, requests per second, default 100, where a negative
// number switches throttling off; burst, requests, default 130, rule: at least 0 (component-base).
// Zero counts as unset for qps and burst.
type ClientConnection struct {
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`

	// Namespaces restricts caches, controllers and webhooks to these namespaces. Default: empty, which means all.
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// CacheResyncPeriod is the time after which the caches hand every object to the controllers again.
	// Default: 24h. Rule: at least 10s.
	// +optional
	CacheResyncPeriod *metav1.Duration `json:"cacheResyncPeriod,omitempty"`
}

// ServerConfiguration holds the addresses on which the process listens.
type ServerConfiguration struct {
	// Webhooks is the HTTPS server of the webhooks. Default port: 9449.
	Webhooks HTTPSServer `json:"webhooks"`
	// HealthProbes serves /healthz and /readyz. Default: not nil; port 8081. Rule: set.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`
	// Metrics serves /metrics and, if enabled, Go's profiles. Default: not nil; port 8080. Rule: set.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`
	// UI serves the page about ManagedResources by HTTPS, with the permissions of each viewer (docs/ui.md). Default: nil, which
	// means that it is not served. Default port: 8443. Trellis adds this field.
	// +optional
	UI *UIServer `json:"ui,omitempty"`
}

// UIServer is an address to serve the page on.
type UIServer struct {
	// Rules: bindAddress is an IP address or empty; port is not that of another server of the process.
	Server `json:",inline"`

	// TLS says where the server's certificate is. Default: that of the webhooks, if any is enabled, or else one that each process makes
	// for itself.
	TLS UICertificate `json:"tls"`
}

// UICertificate says where a certificate is that another program renews.
type UICertificate struct {
	// ServerCertDir is the directory that holds tls.crt and tls.key, which are read again when they change. Default: empty.
	ServerCertDir string `json:"serverCertDir"`
}

// Server is an address to listen on.
type Server struct {
	// BindAddress is the IP address to listen on. Default: empty, which means all addresses.
	BindAddress string `json:"bindAddress"`
	// Port is the TCP port to listen on; zero counts as unset. Default: see ServerConfiguration.
	// Rule: at least 0; and at most 65535 (Trellis: nothing can listen on a higher one).
	Port int `json:"port"`
}

// HTTPSServer is an address to listen on, with a certificate.
type HTTPSServer struct {
	Server `json:",inline"`

	// TLS says where the server's certificate is.
	TLS TLSServer `json:"tls"`
}

// TLSServer says where a server's certificate is.
type TLSServer struct {
	// ServerCertDir is the directory that holds tls.crt and tls.key. Default: empty.
	ServerCertDir string `json:"serverCertDir"`
	// SelfManaged has the resource-manager make its certificate and renew it. Default: nil. Rule: not together with
	// serverCertDir. Trellis adds this field.
	// +optional
	SelfManaged *SelfManagedCertificate `json:"selfManaged,omitempty"`
}

// SelfManagedCertificate says where a certificate is kept that the resource-manager makes, and who has to trust it.
type SelfManagedCertificate struct {
	// SecretNamespace and SecretName name the Secret of the source cluster that holds certificates and keys.
	// Rule: not empty.
	SecretNamespace string `json:"secretNamespace"`
	SecretName      string `json:"secretName"`
	// DNSNames are those by which API servers reach the webhooks. Rule: at least one; DNS names (RFC 1123), "*." may be first.
	DNSNames []string `json:"dnsNames"`
	// WebhookConfigurations are the names of the MutatingWebhookConfigurations and ValidatingWebhookConfigurations of the
	// target cluster that receive the CA bundle. Default: gardener-resource-manager.
	// +optional
	WebhookConfigurations []string `json:"webhookConfigurations,omitempty"`
}

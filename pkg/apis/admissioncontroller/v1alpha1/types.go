package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// APIVersion and kind of the configuration.
const (
	APIVersion = "admissioncontroller.config.gardener.cloud/v1alpha1"
	Kind       = "AdmissionControllerConfiguration"
)

// AdmissionControllerConfiguration is the configuration of an admission controller.
type AdmissionControllerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// GardenClientConnection configures the connection to the garden. Without a kubeconfig, the process runs in a Pod of the
	// garden.
	GardenClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"gardenClientConnection"`
	// LeaderElection decides which replica renews the certificate that the process issues itself. All replicas serve webhooks.
	// Defaults: those of component-base, resourceLock leases, resourceNamespace garden, resourceName
	// gardener-admission-controller-leader-election. Trellis adds this field.
	// +optional
	LeaderElection *componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection,omitempty"`
	// LogLevel is the least severe level that is logged. Default: info. Rule: one of info, debug, error.
	LogLevel string `json:"logLevel"`
	// LogFormat is the form of a log line. Default: json. Rule: one of json, text.
	LogFormat string `json:"logFormat"`
	// Server holds the addresses on which the process listens, and the settings of webhooks.
	Server ServerConfiguration `json:"server"`
}

// ServerConfiguration holds the addresses on which the process listens, and the settings of webhooks.
type ServerConfiguration struct {
	// Webhooks serves the webhooks.
	Webhooks HTTPSServer `json:"webhooks"`
	// HealthProbes serves /healthz and /readyz. Default port: 2722.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`
	// Metrics serves /metrics. Default port: 2723.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`
	// ResourceAdmissionConfiguration limits the size of objects. Default: no limits.
	// +optional
	ResourceAdmissionConfiguration *ResourceAdmissionConfiguration `json:"resourceAdmissionConfiguration,omitempty"`
	// EnableDebugHandlers serves the graph of the seed authorizer at /debug/resource-dependency-graph, next to the metrics. Default: false.
	// +optional
	EnableDebugHandlers *bool `json:"enableDebugHandlers,omitempty"`
}

// Server is an address to listen on.
type Server struct {
	// BindAddress is the IP address to listen on. Default: empty, which means all addresses.
	BindAddress string `json:"bindAddress"`
	// Port is the TCP port to listen on.
	Port int `json:"port"`
}

// HTTPSServer is an address to listen on with TLS.
type HTTPSServer struct {
	Server `json:",inline"`

	// TLS configures the certificate.
	TLS TLSServer `json:"tls"`
}

// TLSServer configures the certificate of a server.
type TLSServer struct {
	// ServerCertDir is the directory with tls.crt and tls.key. Default: empty; then the process issues its certificate itself.
	// +optional
	ServerCertDir string `json:"serverCertDir,omitempty"`
	// SelfManaged configures the certificate that the process issues itself. It is not used with serverCertDir. Trellis adds
	// this field.
	// +optional
	SelfManaged *SelfManagedCertificate `json:"selfManaged,omitempty"`
}

// SelfManagedCertificate configures a certificate that the process issues and renews.
type SelfManagedCertificate struct {
	// SecretNamespace and SecretName name the Secret of the garden with the certificates. Default:
	// garden/gardener-admission-controller-cert.
	SecretNamespace string `json:"secretNamespace"`
	SecretName      string `json:"secretName"`
	// DNSNames are the names by which API servers reach the webhooks. Default: those of the Service
	// gardener-admission-controller in the namespace garden.
	DNSNames []string `json:"dnsNames"`
}

// The modes of limits.
const (
	// ModeBlock denies objects that are too large.
	ModeBlock = "block"
	// ModeLog logs them.
	ModeLog = "log"
)

// ResourceAdmissionConfiguration limits the size of objects.
type ResourceAdmissionConfiguration struct {
	// Limits are the limits. The first one that matches a request counts.
	Limits []ResourceLimit `json:"limits"`
	// UnrestrictedSubjects are the users without limits. The apiGroup of users and groups defaults to
	// rbac.authorization.k8s.io. The name "*" matches all.
	// +optional
	UnrestrictedSubjects []rbacv1.Subject `json:"unrestrictedSubjects,omitempty"`
	// OperationMode is what happens to an object that is too large. Default: block. Rule: one of block, log.
	// +optional
	OperationMode *string `json:"operationMode,omitempty"`
}

// ResourceLimit is a limit for objects of some resources. "*" matches all groups, versions or resources.
type ResourceLimit struct {
	// APIGroups are the API groups of the resources. Rule: not empty.
	APIGroups []string `json:"apiGroups"`
	// APIVersions are the versions of the requests. Rule: not empty.
	APIVersions []string `json:"apiVersions"`
	// Resources are the plural names of the resources. Rule: not empty.
	Resources []string `json:"resources"`
	// Size is the maximum number of bytes of an object as JSON, without its status and managedFields. Rule: not negative.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// Count is the maximum number of objects of a resource without namespaces. Rule: not negative.
	// +optional
	Count *int64 `json:"count,omitempty"`
}

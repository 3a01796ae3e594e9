// Package webhook serves the admission webhooks of an extension, with certificates of its own, and registers them.
package webhook

import (
	"context"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Target is the API server that calls a webhook.
type Target string

// The targets.
const (
	// TargetSeed is that of the cluster in which the extension runs. Its configuration is written by the extension.
	TargetSeed Target = "seed"
	// TargetShoot is that of each Shoot. Its configuration is returned by [Server.ShootConfigurations], for a bundle of the Shoot.
	TargetShoot Target = "shoot"
)

// Webhook is an admission webhook.
type Webhook struct {
	// Name without its suffix, such as "controlplane". It is also the path.
	Name string
	// Validating is set for one that does not change objects.
	Validating bool
	// Target is the API server that calls it; empty for TargetSeed.
	Target Target
	// Rules say what it is called for.
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector restrict that; nil for all. See [ShootProvider] and so on.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	// FailurePolicy; empty for Fail in the seed and Ignore in a Shoot.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// TimeoutSeconds is how long the API server waits; 0 for 10.
	TimeoutSeconds int32
	// Handler answers. sigs.k8s.io/controller-runtime/pkg/webhook/admission makes one from a function.
	Handler http.Handler
}

// Options of a [Server].
type Options struct {
	// Name of the extension, such as "provider-local". The configurations are named gardener-extension-<name>, and
	// gardener-extension-<name>-shoot in Shoots.
	Name string
	// Namespace of the extension, and of the Secret with the certificates.
	Namespace string
	// Service of the webhook server; empty for gardener-extension-<name>.
	Service string
	// ServicePort is the port of this Service; 0 for 443.
	ServicePort int32
	// Host and Port are those that the server listens on; empty for all addresses, 0 for 10250.
	Host string
	Port int
	// URL reaches the server instead of the Service, such as https://localhost:10250; empty for the Service.
	URL string
}

// Server serves webhooks. Every replica does, the leader keeps certificates and configurations.
type Server struct{}

// AddToManager adds a server to a manager, together with what makes and renews its certificates, writes the configurations of
// the seed, and repairs them. The process needs the rights to get, list, watch, create and patch MutatingWebhookConfigurations and
// ValidatingWebhookConfigurations, and get, list, watch, create and update Secrets in its namespace.
func AddToManager(ctx context.Context, mgr manager.Manager, webhooks []Webhook, options Options) (*Server, error) {
	panic("not implemented yet")
}

// Check fails until the server has a certificate. It is for readiness.
func (s *Server) Check(*http.Request) error { panic("not implemented yet") }

// ShootConfigurations returns the configurations of the webhooks of [TargetShoot]: objects for a bundle of the Shoot. It is an error if
// there is no certificate yet.
func (s *Server) ShootConfigurations() ([]client.Object, error) { panic("not implemented yet") }

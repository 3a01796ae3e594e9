// Package webhook serves and registers the admission webhooks of an extension. It creates their certificates.
package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// Target is the API server that calls a webhook.
type Target string

// Targets of webhooks.
const (
	// TargetSeed is the API server of the cluster in which the extension runs. The extension writes its configuration.
	TargetSeed Target = "seed"
	// TargetShoot is the API server of each Shoot. [Server.ShootConfigurations] returns its configuration, for a bundle of the Shoot.
	TargetShoot Target = "shoot"
)

// Webhook is an admission webhook.
type Webhook struct {
	// Name without suffix, such as "controlplane". It is also the path.
	Name string
	// Validating is set for a webhook that does not modify objects.
	Validating bool
	// Target is the API server that calls the webhook. It defaults to TargetSeed.
	Target Target
	// Rules define when the webhook is called, see [Writes].
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector restrict the objects. nil selects all. See [ShootProvider] and so on.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	// MatchConditions restrict the objects further, by their content. The API server evaluates them.
	MatchConditions []admissionregistrationv1.MatchCondition
	// FailurePolicy defaults to Fail in the seed and Ignore in a Shoot.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// TimeoutSeconds is how long the API server waits for a response. It defaults to 10.
	TimeoutSeconds int32
	// Handler handles requests. sigs.k8s.io/controller-runtime/pkg/webhook/admission creates one from a function.
	Handler http.Handler
}

// Options are the options of a [Server].
type Options struct {
	// Name of the extension, such as "provider-local". The configurations are named gardener-extension-<name>, and
	// gardener-extension-<name>-shoot in Shoots.
	Name string
	// Namespace of the extension and of the Secret with the certificates. It owns the configurations in the seed.
	Namespace string
	// Service of the webhook server. It defaults to gardener-extension-<name>.
	Service string
	// ServicePort is the port of this Service. It defaults to 443.
	ServicePort int32
	// Host and Port are the address on which the server listens. They default to all addresses and 10250.
	Host string
	Port int
	// URL is an alternative address of the server instead of the Service, without a path, such as https://localhost:10250.
	URL string
}

const (
	namePrefix  = "gardener-extension-"
	shootSuffix = "-shoot"
	// nameDomain is the suffix of the names of webhooks (Gardener).
	nameDomain = "extensions.gardener.cloud"

	defaultServicePort = 443
	defaultPort        = 10250
	defaultTimeout     = 10
)

// withDefaults returns the options with defaults, or an error if they are invalid.
func (o Options) withDefaults() (Options, error) {
	if o.Name == "" || o.Namespace == "" {
		return o, errors.New("the options of the webhook server need a name and a namespace")
	}
	o.Service = cmp.Or(o.Service, namePrefix+o.Name)
	o.ServicePort = cmp.Or(o.ServicePort, defaultServicePort)
	o.Port = cmp.Or(o.Port, defaultPort)
	if o.URL == "" {
		return o, nil
	}
	at, err := url.Parse(o.URL)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.Path != "" {
		return o, fmt.Errorf("the URL %q of the webhook server is not https://<host>:<port>", o.URL)
	}
	return o, nil
}

// secretName returns the name of the Secret with the certificates.
func (o Options) secretName() string { return namePrefix + o.Name + "-webhook" }

// configurationName returns the name of the configurations for a target.
func (o Options) configurationName(target Target) string {
	if target == TargetShoot {
		return namePrefix + o.Name + shootSuffix
	}
	return namePrefix + o.Name
}

// nameSuffix returns the suffix that makes the name of a webhook a domain.
func (o Options) nameSuffix() string {
	return "." + strings.TrimPrefix(o.Name, "provider-") + "." + nameDomain
}

// path returns the path at which the webhook is served.
func (w Webhook) path() string { return "/" + w.Name }

// dnsNames returns the DNS names of the server for API servers. Those of Shoots use the full name of the Service.
func (o Options) dnsNames() []string {
	names := []string{o.Service, o.Service + "." + o.Namespace, o.Service + "." + o.Namespace + ".svc"}
	if at, err := url.Parse(o.URL); err == nil && at.Hostname() != "" {
		names = append(names, at.Hostname())
	}
	return names
}

// clientConfig returns how the API server of a target reaches the webhooks.
func (o Options) clientConfig(target Target, bundle []byte) webhookserver.ClientConfig {
	switch {
	case o.URL != "":
		return webhookserver.AtURL(o.URL, bundle)
	case target == TargetShoot:
		return webhookserver.AtURL(fmt.Sprintf("https://%s.%s:%d", o.Service, o.Namespace, o.ServicePort), bundle)
	}
	return webhookserver.AtService(o.Namespace, o.Service, o.ServicePort, bundle)
}

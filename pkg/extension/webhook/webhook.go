// Package webhook serves the admission webhooks of an extension, with certificates of its own, and registers them.
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
	// Rules say what it is called for; see [Writes].
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector restrict that; nil for all. See [ShootProvider] and so on.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	// MatchConditions restrict it further, by what is in the object. The API server evaluates them.
	MatchConditions []admissionregistrationv1.MatchCondition
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
	// Namespace of the extension, and of the Secret with the certificates. The configurations of the seed go with it.
	Namespace string
	// Service of the webhook server; empty for gardener-extension-<name>.
	Service string
	// ServicePort is the port of this Service; 0 for 443.
	ServicePort int32
	// Host and Port are those that the server listens on; empty for all addresses, 0 for 10250.
	Host string
	Port int
	// URL reaches the server instead of the Service, such as https://localhost:10250, without a path; empty for the Service.
	URL string
}

const (
	namePrefix  = "gardener-extension-"
	shootSuffix = "-shoot"
	// nameDomain ends the names of webhooks (Gardener).
	nameDomain = "extensions.gardener.cloud"

	defaultServicePort = 443
	defaultPort        = 10250
	defaultTimeout     = 10
)

// withDefaults returns the options, or what is wrong with them.
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

// secretName is the name of the Secret with the certificates.
func (o Options) secretName() string { return namePrefix + o.Name + "-webhook" }

// configurationName is the name of the configurations for a target.
func (o Options) configurationName(target Target) string {
	if target == TargetShoot {
		return namePrefix + o.Name + shootSuffix
	}
	return namePrefix + o.Name
}

// webhookName is the full name of a webhook.
func (o Options) webhookName(name string) string {
	return strings.Join([]string{name, strings.TrimPrefix(o.Name, "provider-"), nameDomain}, ".")
}

// dnsNames are those by which API servers reach the server: those of Shoots reach it by the full name of the Service.
func (o Options) dnsNames() []string {
	names := []string{o.Service, o.Service + "." + o.Namespace, o.Service + "." + o.Namespace + ".svc"}
	if at, err := url.Parse(o.URL); err == nil && at.Hostname() != "" {
		names = append(names, at.Hostname())
	}
	return names
}

// clientConfig says how the API server of a target reaches a webhook.
func (o Options) clientConfig(target Target, name string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	config, path := admissionregistrationv1.WebhookClientConfig{CABundle: bundle}, "/"+name
	switch {
	case o.URL != "":
		at := o.URL + path
		config.URL = &at
	case target == TargetShoot:
		at := fmt.Sprintf("https://%s.%s:%d%s", o.Service, o.Namespace, o.ServicePort, path)
		config.URL = &at
	default:
		config.Service = &admissionregistrationv1.ServiceReference{Namespace: o.Namespace, Name: o.Service, Port: &o.ServicePort, Path: &path}
	}
	return config
}

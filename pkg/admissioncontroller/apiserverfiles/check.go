// Package apiserverfiles checks the configuration files that users provide for the kube-apiserver of a Shoot in ConfigMaps:
// audit policies, and the configurations of authentication and authorization. With an invalid file, the kube-apiserver
// would not start.
package apiserverfiles

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/apis/audit"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// codecs decode the files strictly, in all versions of Kubernetes.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	auditinstall.Install(scheme)
	apiserverinstall.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// decode decodes a file of a kind. The error does not quote its content.
func decode(content string, into runtime.Object, kind string) error {
	var given metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(content), &given); err == nil && (given.APIVersion == "" || given.Kind == "") {
		return fmt.Errorf("it is not a valid %s: apiVersion and kind must be set", kind)
	}
	_, found, err := codecs.UniversalDecoder().Decode([]byte(content), nil, into)
	switch {
	case found != nil && found.Kind != kind:
		return fmt.Errorf("it contains the kind %q, not %s", found.Kind, kind)
	case err != nil:
		return fmt.Errorf("it is not a valid %s: %w", kind, err)
	}
	return nil
}

// checkAuditPolicy returns what is wrong with the audit policy of a Shoot.
func checkAuditPolicy(content string, _ *corev1beta1.Shoot) error { return CheckAuditPolicy(content) }

// CheckAuditPolicy returns what is wrong with an audit policy in YAML.
func CheckAuditPolicy(content string) error {
	policy := &audit.Policy{}
	if err := decode(content, policy, "Policy"); err != nil {
		return err
	}
	return auditvalidation.ValidatePolicy(policy).ToAggregate()
}

// checkAuthentication returns what is wrong with a configuration of authentication for a Shoot. Issuers of the Shoot's own
// tokens must not be configured again: kube-apiserver accepts these tokens anyway, and with other rules.
func checkAuthentication(content string, shoot *corev1beta1.Shoot) error {
	config := &apiserver.AuthenticationConfiguration{}
	if err := decode(content, config, "AuthenticationConfiguration"); err != nil {
		return err
	}
	errs := apiservervalidation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config, issuersOf(shoot))
	if server := shoot.Spec.Kubernetes.KubeAPIServer; config.Anonymous != nil && server != nil && server.EnableAnonymousAuthentication != nil {
		errs = append(errs, field.Forbidden(field.NewPath("anonymous"), "the Shoot sets enableAnonymousAuthentication: remove one of them"))
	}
	return errs.ToAggregate()
}

// issuersOf returns the issuers of the ServiceAccount tokens of a Shoot.
func issuersOf(shoot *corev1beta1.Shoot) []string {
	var issuers []string
	if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil && server.ServiceAccountConfig != nil {
		if issuer := ptr.Deref(server.ServiceAccountConfig.Issuer, ""); issuer != "" {
			issuers = append(issuers, issuer)
		}
		issuers = append(issuers, server.ServiceAccountConfig.AcceptedIssuers...)
	}
	for _, address := range shoot.Status.AdvertisedAddresses {
		if !slices.Contains(issuers, address.URL) {
			issuers = append(issuers, address.URL)
		}
	}
	return issuers
}

// webhookType is the only type of authorizer that users can add.
const webhookType = string(apiserver.TypeWebhook)

// checkAuthorization returns what is wrong with a configuration of authorization for a Shoot.
func checkAuthorization(content string, shoot *corev1beta1.Shoot) error {
	config := &apiserver.AuthorizationConfiguration{}
	if err := decode(content, config, "AuthorizationConfiguration"); err != nil {
		return err
	}
	var errs field.ErrorList
	for i := range config.Authorizers {
		path := field.NewPath("authorizers").Index(i)
		authorizer := &config.Authorizers[i]
		if authorizer.Webhook == nil {
			continue // rejected below
		}
		if authorizer.Webhook.ConnectionInfo != (apiserver.WebhookConnectionInfo{}) {
			errs = append(errs, field.Forbidden(path.Child("webhook", "connectionInfo"),
				"must not be set, because it names a file of kube-apiserver: refer to a Secret in structuredAuthorization.kubeconfigs of the Shoot"))
		}
		if !hasKubeconfig(shoot, authorizer.Name) {
			errs = append(errs, field.Required(path.Child("name"),
				fmt.Sprintf("structuredAuthorization.kubeconfigs of the Shoot has no entry for the authorizer %q", authorizer.Name)))
		}
		// gardenlet writes this connection. The validation needs one.
		authorizer.Webhook.ConnectionInfo = apiserver.WebhookConnectionInfo{Type: apiserver.AuthorizationWebhookConnectionInfoTypeInCluster}
	}
	errs = append(errs, apiservervalidation.ValidateAuthorizationConfiguration(
		authorizationcel.NewDefaultCompiler(), nil, config, sets.New(webhookType), sets.New(webhookType))...)
	return errs.ToAggregate()
}

// hasKubeconfig reports whether a Shoot has a kubeconfig for an authorizer.
func hasKubeconfig(shoot *corev1beta1.Shoot, authorizer string) bool {
	server := shoot.Spec.Kubernetes.KubeAPIServer
	return server != nil && server.StructuredAuthorization != nil &&
		slices.ContainsFunc(server.StructuredAuthorization.Kubeconfigs, func(ref corev1beta1.AuthorizerKubeconfigReference) bool {
			return ref.AuthorizerName == authorizer
		})
}

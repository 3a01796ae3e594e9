package kubeapiserver

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// Mount paths and names of the files.
const (
	pathAdmission             = "/etc/kubernetes/admission"
	pathAdmissionKubeconfigs  = "/etc/kubernetes/admission-kubeconfigs"
	pathAudit                 = "/etc/kubernetes/audit"
	pathAuthentication        = "/etc/kubernetes/structured/authentication"
	pathAuthorization         = "/etc/kubernetes/structured/authorization"
	pathAuthorizerKubeconfigs = "/etc/kubernetes/structured/authorization-kubeconfigs"
	pathWebhookKubeconfigs    = "/etc/kubernetes/webhook-kubeconfigs"
	pathSNI                   = "/srv/kubernetes/sni"
	pathEncryption            = "/etc/kubernetes/etcd-encryption-secret"

	fileAdmission = "admission-configuration.yaml"
	fileAudit     = "audit-policy.yaml"
	fileConfig    = "config.yaml"
)

// configVersion is the version of the authentication and authorization files. All supported versions of Kubernetes
// accept it.
const configVersion = "apiserver.config.k8s.io/v1beta1"

// noAudit is the audit policy of a shoot without one. It records nothing.
const noAudit = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n"

// tree is a decoded YAML file.
type tree = map[string]any

// configurations returns the objects with all configuration files.
func configurations(values Values) (configured, error) {
	var c configured
	var errs []error
	keep := func(err error) { errs = append(errs, err) }
	files, err := admissionFiles(values)
	keep(err)
	audit, err := auditPolicy(values.Given.AuditPolicy)
	keep(err)
	authentication, err := authentication(values)
	keep(err)
	authorization, err := authorization(values)
	keep(err)
	c.egress, err = egressFile(values)
	keep(err)
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	for _, each := range []struct {
		into  **corev1.ConfigMap
		name  string
		files map[string]string
	}{
		{&c.admission, "kube-apiserver-admission-config", files},
		{&c.audit, "audit-policy-config", map[string]string{fileAudit: audit}},
		{&c.authentication, "kube-apiserver-authentication-config", map[string]string{fileConfig: authentication}},
		{&c.authorization, "kube-apiserver-authorization-config", map[string]string{fileConfig: authorization}},
	} {
		configMap, err := parts.Files(values.Namespace, each.name, selector, each.files)
		if err != nil {
			return c, err
		}
		*each.into = configMap
	}
	for _, each := range []struct {
		into  **corev1.Secret
		name  string
		files map[string][]byte
	}{
		{&c.admissionKubeconfigs, "kube-apiserver-admission-kubeconfigs", renamed(values.Given.AdmissionKubeconfigs)},
		{&c.authorizerKubeconfigs, "kube-apiserver-authorization-webhooks-kubeconfigs", renamed(authorizerKubeconfigs(values))},
		{&c.webhookKubeconfigs, "kube-apiserver-webhook-kubeconfigs", values.Garden.kubeconfigs()},
	} {
		if len(each.files) == 0 {
			continue
		}
		secret, err := parts.SecretFiles(values.Namespace, each.name, selector, each.files)
		if err != nil {
			return c, err
		}
		*each.into = secret
	}
	return c, nil
}

// renamed maps kubeconfigs to their file names.
func renamed(kubeconfigs map[string][]byte) map[string][]byte {
	files := map[string][]byte{}
	for name, text := range kubeconfigs {
		files[kubeconfigFile(name)] = text
	}
	return files
}

func kubeconfigFile(name string) string { return strings.ToLower(name) + "-kubeconfig.yaml" }

// auditPolicy returns the audit policy of the user, or one that records nothing.
func auditPolicy(text string) (string, error) {
	if text == "" {
		return noAudit, nil
	}
	policy, err := readTree(text)
	if err == nil && (policy["kind"] != "Policy" || !strings.HasPrefix(fmt.Sprint(policy["apiVersion"]), "audit.k8s.io/")) {
		err = errors.New("the ConfigMap's key policy is not a Policy of audit.k8s.io")
	}
	if err != nil {
		return "", invalid("auditConfig.auditPolicy.configMapRef", err)
	}
	return text, nil
}

// authentication returns the file that configures authentication in addition to certificates and ServiceAccount tokens.
// Anonymous requests are rejected unless the Shoot allows them.
func authentication(values Values) (string, error) {
	config := tree{}
	if text := values.Given.Authentication; text != "" {
		var err error
		if config, err = readTree(text); err == nil && config["kind"] != "AuthenticationConfiguration" {
			err = errors.New("the ConfigMap's key config.yaml is not an AuthenticationConfiguration")
		}
		if err != nil {
			return "", invalid("structuredAuthentication.configMapName", err)
		}
	}
	if oidc := values.Config.OIDCConfig; oidc != nil {
		config["jwt"] = []any{jwtAuthenticator(oidc)}
	}
	config["apiVersion"], config["kind"] = configVersion, "AuthenticationConfiguration"
	if config["anonymous"] == nil {
		config["anonymous"] = tree{"enabled": ptr.Deref(values.Config.EnableAnonymousAuthentication, false)}
	}
	return writeTree(config)
}

// authorization returns the file that lists the authorizers: those of kubelets and node agents if there are workers, RBAC, and the
// webhooks of the user.
func authorization(values Values) (string, error) {
	authorizers := []any{tree{"type": "RBAC", "name": "rbac"}}
	if values.Mounted.hasNodes() {
		authorizers = []any{tree{"type": "Node", "name": "node"}, authorizers[0], nodeAgentAuthorizer()}
	}
	authorizers = append(authorizers, values.Garden.authorizers()...)
	if text := values.Given.Authorization; text != "" {
		more, err := webhooksOf(text, values)
		if err != nil {
			return "", invalid("structuredAuthorization.configMapName", err)
		}
		authorizers = append(authorizers, more...)
	}
	return writeTree(tree{"apiVersion": configVersion, "kind": "AuthorizationConfiguration", "authorizers": authorizers})
}

// webhooksOf returns the authorizers in the user's file, with the paths of their kubeconfigs.
func webhooksOf(text string, values Values) ([]any, error) {
	config, err := readTree(text)
	if err != nil {
		return nil, err
	}
	given, _ := config["authorizers"].([]any)
	if config["kind"] != "AuthorizationConfiguration" || len(given) == 0 {
		return nil, errors.New("the ConfigMap's key config.yaml is not an AuthorizationConfiguration with authorizers")
	}
	for i := range given {
		authorizer, _ := given[i].(tree)
		name, _ := authorizer["name"].(string)
		webhook, _ := authorizer["webhook"].(tree)
		switch {
		case authorizer["type"] != "Webhook" || webhook == nil:
			return nil, fmt.Errorf("authorizers[%d] is not of type Webhook: only webhooks can be added", i)
		case values.Given.AuthorizerKubeconfigs[name] == nil:
			return nil, fmt.Errorf("authorizers[%d]: structuredAuthorization.kubeconfigs has no entry for %q", i, name)
		}
		webhook["connectionInfo"] = tree{"type": "KubeConfigFile", "kubeConfigFile": pathAuthorizerKubeconfigs + "/" + kubeconfigFile(name)}
	}
	return given, nil
}

// admissionFiles returns the configuration of admission plugins: the main file and a file for each plugin with a
// configuration.
func admissionFiles(values Values) (map[string]string, error) {
	files, plugins := map[string]string{}, []any{}
	for i, plugin := range enabledPlugins(values.Config) {
		text, err := pluginFile(plugin, values)
		if err != nil {
			return nil, invalid(fmt.Sprintf("admissionPlugins[%d].config", i), err)
		}
		if text == "" {
			continue
		}
		file := strings.ToLower(plugin.Name) + ".yaml"
		files[file] = text
		plugins = append(plugins, tree{"name": plugin.Name, "path": pathAdmission + "/" + file})
	}
	text, err := writeTree(tree{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins})
	files[fileAdmission] = text
	return files, err
}

// enabledPlugins returns the plugins of the Shoot that are not disabled, sorted by name.
func enabledPlugins(config corev1beta1.KubeAPIServerConfig) []corev1beta1.AdmissionPlugin {
	disabled := func(plugin corev1beta1.AdmissionPlugin) bool { return ptr.Deref(plugin.Disabled, false) }
	plugins := slices.DeleteFunc(slices.Clone(config.AdmissionPlugins), disabled)
	slices.SortFunc(plugins, func(a, b corev1beta1.AdmissionPlugin) int { return cmp.Compare(a.Name, b.Name) })
	return plugins
}

// pluginFile returns the configuration of a plugin; empty if it has none. The namespace kube-system is always exempt
// from PodSecurity, as it was before users could configure the plugin.
func pluginFile(plugin corev1beta1.AdmissionPlugin, values Values) (string, error) {
	config := tree{}
	if text := raw(plugin.Config); len(text) > 0 {
		var err error
		if config, err = readTree(string(text)); err != nil {
			return "", err
		}
	}
	file := pathAdmissionKubeconfigs + "/" + kubeconfigFile(plugin.Name)
	hasKubeconfig := values.Given.AdmissionKubeconfigs[plugin.Name] != nil
	policy, _ := config["imagePolicy"].(tree)
	switch {
	case !hasKubeconfig && (config["kubeConfigFile"] != nil || policy["kubeConfigFile"] != nil):
		return "", errors.New("kubeConfigFile must not be set, because it is a file of the API server's Pod: set kubeconfigSecretName")
	case plugin.Name == "PodSecurity" && len(config) > 0:
		exempt(config)
	case plugin.Name == "ImagePolicyWebhook" && hasKubeconfig:
		if policy == nil {
			policy = tree{}
		}
		policy["kubeConfigFile"] = file
		config["imagePolicy"] = policy
	case hasKubeconfig && (plugin.Name == "ValidatingAdmissionWebhook" || plugin.Name == "MutatingAdmissionWebhook"):
		config["apiVersion"], config["kind"] = "apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"
		config["kubeConfigFile"] = file
	}
	if len(config) == 0 {
		return "", nil
	}
	return writeTree(config)
}

func exempt(config tree) {
	exemptions, _ := config["exemptions"].(tree)
	if exemptions == nil {
		exemptions = tree{}
	}
	namespaces, _ := exemptions["namespaces"].([]any)
	if !slices.Contains(namespaces, any(metav1.NamespaceSystem)) {
		exemptions["namespaces"] = append(namespaces, metav1.NamespaceSystem)
	}
	config["exemptions"] = exemptions
}

func readTree(text string) (tree, error) {
	read := tree{}
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	return read, nil
}

func writeTree(content tree) (string, error) {
	text, err := yaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encode a configuration of kube-apiserver: %w", err)
	}
	return string(text), nil
}

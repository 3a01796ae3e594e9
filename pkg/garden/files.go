package garden

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

// Kinds of objects that a Garden refers to, and keys of their data.
const (
	kindConfigMap, kindSecret = "ConfigMap", "Secret"

	keyPolicy     = "policy"
	keyConfig     = "config.yaml"
	keyKubeconfig = "kubeconfig"
	keyTLS        = "tls.crt"

	fieldServer   = "spec.virtualCluster.kubernetes.kubeAPIServer."
	fieldGardener = "spec.virtualCluster.gardener.gardenerAPIServer."
)

// reference refers to one key of an object in the namespace of the operator. field is the path of the field with the reference.
type reference struct{ kind, name, key, field string }

func (r reference) String() string { return r.kind + "/" + r.name }

// references returns the references of the API servers to objects.
func (in Inputs) references() []reference {
	server, gardener := in.server(), in.gardener()
	all := []reference{
		{kindConfigMap, auditPolicyOf(server.AuditConfig), keyPolicy, fieldServer + "auditConfig.auditPolicy.configMapRef"},
		{kindSecret, auditWebhookOf(server.AuditWebhook), keyKubeconfig, fieldServer + "auditWebhook.kubeconfigSecretName"},
		{kindConfigMap, auditPolicyOf(gardener.AuditConfig), keyPolicy, fieldGardener + "auditConfig.auditPolicy.configMapRef"},
		{kindSecret, auditWebhookOf(gardener.AuditWebhook), keyKubeconfig, fieldGardener + "auditWebhook.kubeconfigSecretName"},
		{kindSecret, in.sniSecret(), keyTLS, fieldServer + "sni.secretName"},
	}
	if server.Authentication != nil && server.Authentication.Webhook != nil {
		name := server.Authentication.Webhook.KubeconfigSecretName
		all = append(all, reference{kindSecret, name, keyKubeconfig, fieldServer + "authentication.webhook.kubeconfigSecretName"})
	}
	if structured := server.StructuredAuthentication; structured != nil {
		all = append(all, reference{kindConfigMap, structured.ConfigMapName, keyConfig, fieldServer + "structuredAuthentication.configMapName"})
	}
	if structured := server.StructuredAuthorization; structured != nil {
		all = append(all, reference{kindConfigMap, structured.ConfigMapName, keyConfig, fieldServer + "structuredAuthorization.configMapName"})
		for i, named := range structured.Kubeconfigs {
			field := fmt.Sprintf("%sstructuredAuthorization.kubeconfigs[%d].secretName", fieldServer, i)
			all = append(all, reference{kindSecret, named.SecretName, keyKubeconfig, field})
		}
	}
	for i, plugin := range server.AdmissionPlugins {
		field := fmt.Sprintf("%sadmissionPlugins[%d].kubeconfigSecretName", fieldServer, i)
		all = append(all, reference{kindSecret, ptr.Deref(plugin.KubeconfigSecretName, ""), keyKubeconfig, field})
	}
	return slices.DeleteFunc(all, func(each reference) bool { return each.name == "" })
}

// sniSecret returns the name of the Secret with the certificate for further host names, empty for none.
func (in Inputs) sniSecret() string {
	if sni := in.server().SNI; sni != nil {
		return ptr.Deref(sni.SecretName, "")
	}
	return ""
}

// unknownFiles names the objects that do not exist.
func (in Inputs) unknownFiles() string {
	var missing []string
	for _, named := range in.references() {
		if _, found := in.Files[named.String()]; !found {
			missing = append(missing, fmt.Sprintf("%s %s of %s", named.kind, named.name, named.field))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "these objects do not exist in the namespace " + in.Namespace + ": " + strings.Join(missing, ", ")
}

// content returns the data to which a reference refers. Kubeconfigs must not make an API server run programs or read files.
func (in Inputs) content(of reference) ([]byte, error) {
	given := in.Files[of.String()]
	var content []byte
	switch {
	case given.ConfigMap != nil:
		content = []byte(given.ConfigMap.Data[of.key])
	case given.Secret != nil:
		content = given.Secret.Data[of.key]
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("%s: %s %s has no key %s", of.field, of.kind, of.name, of.key)
	}
	if of.key == keyKubeconfig {
		if err := kubeconfig.CheckInline(content); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", of.field, of.kind, of.name, err)
		}
	}
	return content, nil
}

// serverFiles returns the files of the virtual garden's API server, and its settings.
func (in Inputs) serverFiles() (kubeapiserver.Given, *kubeapiserver.GardenSettings, error) {
	files := kubeapiserver.Given{AuthorizerKubeconfigs: map[string][]byte{}, AdmissionKubeconfigs: map[string][]byte{}}
	settings := in.serverSettings()
	server := in.server()
	for _, named := range in.references() {
		field, ours := strings.CutPrefix(named.field, fieldServer)
		if !ours {
			continue
		}
		content, err := in.content(named)
		if err != nil {
			return files, nil, err
		}
		switch field {
		case "auditConfig.auditPolicy.configMapRef":
			files.AuditPolicy = string(content)
		case "structuredAuthentication.configMapName":
			files.Authentication = string(content)
		case "structuredAuthorization.configMapName":
			files.Authorization = string(content)
		case "auditWebhook.kubeconfigSecretName":
			settings.AuditWebhook.Kubeconfig = content
		case "authentication.webhook.kubeconfigSecretName":
			settings.AuthenticationWebhook.Kubeconfig = content
		}
		if server.StructuredAuthorization != nil && strings.HasPrefix(field, "structuredAuthorization.kubeconfigs") {
			for _, authorizer := range server.StructuredAuthorization.Kubeconfigs {
				if authorizer.SecretName == named.name {
					files.AuthorizerKubeconfigs[authorizer.AuthorizerName] = content
				}
			}
		}
		for _, plugin := range server.AdmissionPlugins {
			if strings.HasPrefix(field, "admissionPlugins") && ptr.Deref(plugin.KubeconfigSecretName, "") == named.name {
				files.AdmissionKubeconfigs[plugin.Name] = content
			}
		}
	}
	return files, settings, nil
}

// serverSettings returns the settings that only the API server of a garden has, without the contents of objects.
func (in Inputs) serverSettings() *kubeapiserver.GardenSettings {
	server := in.server()
	settings := &kubeapiserver.GardenSettings{SeedAuthorizer: &kubeapiserver.SeedAuthorizer{
		URL:      "https://" + gardenerprograms.AdmissionController.Name() + "." + in.Namespace + "/webhooks/auth/seed",
		CABundle: in.bundle(constants.SecretNameCAGardener),
	}}
	if hook := server.AuditWebhook; hook != nil {
		settings.AuditWebhook = &kubeapiserver.AuditWebhook{BatchMaxSize: ptr.Deref(hook.BatchMaxSize, 0), Version: ptr.Deref(hook.Version, "")}
	}
	if server.Authentication != nil && server.Authentication.Webhook != nil {
		hook := server.Authentication.Webhook
		settings.AuthenticationWebhook = &kubeapiserver.AuthenticationWebhook{Version: ptr.Deref(hook.Version, "")}
		if hook.CacheTTL != nil {
			settings.AuthenticationWebhook.CacheTTL = hook.CacheTTL.Duration
		}
	}
	for _, resource := range server.ResourcesToStoreInETCDEvents {
		settings.EventResources = append(settings.EventResources, resource.Group+"/"+resource.Resource)
	}
	if server.SNI != nil && in.sniSecret() != "" {
		settings.SNI = server.SNI.DomainPatterns
	}
	return settings
}

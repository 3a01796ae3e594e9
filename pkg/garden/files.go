package garden

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

const (
	// keyTLS is the key of a certificate in a Secret.
	keyTLS = "tls.crt"

	fieldServer   = "spec.virtualCluster.kubernetes.kubeAPIServer."
	fieldGardener = "spec.virtualCluster.gardener.gardenerAPIServer."

	fieldAuditWebhook   = "auditWebhook.kubeconfigSecretName"
	fieldAuthentication = "authentication.webhook.kubeconfigSecretName"
)

// references returns the references of the API servers to objects.
func (in Inputs) references() []userfiles.Reference {
	return slices.Concat(userfiles.Of(in.server().KubeAPIServerConfig, fieldServer), in.gardenReferences())
}

// gardenReferences returns the references that only a Garden has.
func (in Inputs) gardenReferences() []userfiles.Reference {
	server, gardener := in.server(), in.gardener()
	all := []userfiles.Reference{
		{Kind: userfiles.Secret, Name: auditWebhookOf(server.AuditWebhook), Key: userfiles.KeyKubeconfig, Field: fieldServer + fieldAuditWebhook},
		auditPolicyReference(gardener), auditWebhookReference(gardener),
		{Kind: userfiles.Secret, Name: in.sniSecret(), Key: keyTLS, Field: fieldServer + "sni.secretName"},
	}
	if server.Authentication != nil && server.Authentication.Webhook != nil {
		name := server.Authentication.Webhook.KubeconfigSecretName
		all = append(all, userfiles.Reference{Kind: userfiles.Secret, Name: name, Key: userfiles.KeyKubeconfig, Field: fieldServer + fieldAuthentication})
	}
	return slices.DeleteFunc(all, func(each userfiles.Reference) bool { return each.Name == "" })
}

// auditPolicyReference returns the reference of gardener-apiserver to the policy of its audit log.
func auditPolicyReference(gardener operatorv1alpha1.GardenerAPIServerConfig) userfiles.Reference {
	return userfiles.Reference{
		Kind: userfiles.ConfigMap, Name: auditPolicyOf(gardener.AuditConfig), Key: userfiles.KeyPolicy,
		Field: fieldGardener + "auditConfig.auditPolicy.configMapRef",
	}
}

// auditWebhookReference returns the reference of gardener-apiserver to the kubeconfig for its audit log.
func auditWebhookReference(gardener operatorv1alpha1.GardenerAPIServerConfig) userfiles.Reference {
	return userfiles.Reference{
		Kind: userfiles.Secret, Name: auditWebhookOf(gardener.AuditWebhook), Key: userfiles.KeyKubeconfig, Field: fieldGardener + fieldAuditWebhook,
	}
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
	missing := in.Files.Missing(in.references())
	if missing == "" {
		return ""
	}
	return "these objects do not exist in the namespace " + in.Namespace + ": " + missing
}

// serverFiles returns the files of the virtual garden's API server, and its settings.
func (in Inputs) serverFiles() (kubeapiserver.Given, *kubeapiserver.GardenSettings, error) {
	files, err := in.Files.Given(in.server().KubeAPIServerConfig, fieldServer)
	if err != nil {
		return files, nil, err
	}
	settings := in.serverSettings()
	for _, named := range in.gardenReferences() {
		field, ours := strings.CutPrefix(named.Field, fieldServer)
		if !ours {
			continue
		}
		content, err := in.Files.Content(named)
		if err != nil {
			return files, nil, err
		}
		switch field {
		case fieldAuditWebhook:
			settings.AuditWebhook.Kubeconfig = content
		case fieldAuthentication:
			settings.AuthenticationWebhook.Kubeconfig = content
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

package shoot

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

// Keys of the data of users' objects.
const (
	keyPolicy     = "policy"
	keyConfig     = "config.yaml"
	keyKubeconfig = "kubeconfig"
	maxUserFile   = 1 << 20 // the limit of the size of a ConfigMap
)

// fileReference refers to one key of an object of the garden. field is the field of spec.kubernetes.kubeAPIServer with the reference.
type fileReference struct{ kind, name, key, field string }

func (n fileReference) String() string { return n.kind + "/" + n.name }

// fileReferences returns the references in spec.kubernetes.kubeAPIServer to objects of the garden.
func (in Inputs) fileReferences() []fileReference {
	var names []fileReference
	server := in.server()
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		names = append(names, fileReference{"ConfigMap", audit.AuditPolicy.ConfigMapRef.Name, keyPolicy, "auditConfig.auditPolicy.configMapRef"})
	}
	if structured := server.StructuredAuthentication; structured != nil {
		names = append(names, fileReference{"ConfigMap", structured.ConfigMapName, keyConfig, "structuredAuthentication.configMapName"})
	}
	if structured := server.StructuredAuthorization; structured != nil {
		names = append(names, fileReference{"ConfigMap", structured.ConfigMapName, keyConfig, "structuredAuthorization.configMapName"})
		for i, named := range structured.Kubeconfigs {
			names = append(names, fileReference{
				"Secret", named.SecretName, keyKubeconfig, fmt.Sprintf("structuredAuthorization.kubeconfigs[%d].secretName", i),
			})
		}
	}
	for i, plugin := range server.AdmissionPlugins {
		if secret := ptr.Deref(plugin.KubeconfigSecretName, ""); secret != "" {
			names = append(names, fileReference{"Secret", secret, keyKubeconfig, fmt.Sprintf("admissionPlugins[%d].kubeconfigSecretName", i)})
		}
	}
	return names
}

// unknownUserFiles names the objects that do not exist.
func (in Inputs) unknownUserFiles() string {
	var missing []string
	for _, named := range in.fileReferences() {
		if _, found := in.UserFiles[named.String()]; !found {
			missing = append(missing, fmt.Sprintf("%s %s of spec.kubernetes.kubeAPIServer.%s", named.kind, named.name, named.field))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "these objects do not exist in the namespace of the Shoot: " + strings.Join(missing, ", ")
}

// content returns the data to which a reference refers. The API server runs in the seed, so kubeconfigs must not make it
// run programs or read files there.
func (in Inputs) content(of fileReference) ([]byte, error) {
	given := in.UserFiles[of.String()]
	var content []byte
	switch {
	case given.ConfigMap != nil:
		content = []byte(given.ConfigMap.Data[of.key])
	case given.Secret != nil:
		content = given.Secret.Data[of.key]
	}
	switch {
	case len(content) == 0:
		return nil, fmt.Errorf("spec.kubernetes.kubeAPIServer.%s: %s %s has no key %s", of.field, of.kind, of.name, of.key)
	case len(content) > maxUserFile:
		return nil, fmt.Errorf("spec.kubernetes.kubeAPIServer.%s: key %s of %s %s has %d bytes, more than the %d allowed",
			of.field, of.key, of.kind, of.name, len(content), maxUserFile)
	}
	if of.key == keyKubeconfig {
		if err := kubeconfig.CheckInline(content); err != nil {
			return nil, fmt.Errorf("spec.kubernetes.kubeAPIServer.%s: %s %s: %w", of.field, of.kind, of.name, err)
		}
	}
	return content, nil
}

// userFiles returns the files for the API server from users' objects.
func (in Inputs) userFiles() (kubeapiserver.Given, error) {
	files := kubeapiserver.Given{AuthorizerKubeconfigs: map[string][]byte{}, AdmissionKubeconfigs: map[string][]byte{}}
	server := in.server()
	for _, named := range in.fileReferences() {
		content, err := in.content(named)
		if err != nil {
			return files, err
		}
		switch named.field {
		case "auditConfig.auditPolicy.configMapRef":
			files.AuditPolicy = string(content)
		case "structuredAuthentication.configMapName":
			files.Authentication = string(content)
		case "structuredAuthorization.configMapName":
			files.Authorization = string(content)
		}
		if server.StructuredAuthorization != nil {
			for _, authorizer := range server.StructuredAuthorization.Kubeconfigs {
				if named.kind == "Secret" && authorizer.SecretName == named.name && strings.HasPrefix(named.field, "structuredAuthorization") {
					files.AuthorizerKubeconfigs[authorizer.AuthorizerName] = content
				}
			}
		}
		for _, plugin := range server.AdmissionPlugins {
			if strings.HasPrefix(named.field, "admissionPlugins") && ptr.Deref(plugin.KubeconfigSecretName, "") == named.name {
				files.AdmissionKubeconfigs[plugin.Name] = content
			}
		}
	}
	return files, nil
}

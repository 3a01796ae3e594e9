// Package userfiles has the files of API servers from ConfigMaps and Secrets that a Shoot or a Garden refers to.
package userfiles

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

// Kinds of the objects, and keys of their data.
const (
	ConfigMap = "ConfigMap"
	Secret    = "Secret"

	KeyPolicy     = "policy"
	KeyConfig     = "config.yaml"
	KeyKubeconfig = "kubeconfig"
	maxSize       = 1 << 20 // the limit of the size of a ConfigMap
)

// Reference refers to one key of an object. Field is the path of the field with the reference.
type Reference struct{ Kind, Name, Key, Field string }

// String returns the kind and the name of the object.
func (r Reference) String() string { return r.Kind + "/" + r.Name }

// File is an object to which a Reference refers. One of the fields is set.
type File struct {
	ConfigMap *corev1.ConfigMap
	Secret    *corev1.Secret
}

// Files are the objects that exist, by the strings of their references.
type Files map[string]File

// Read reads the objects. It skips those that do not exist.
func Read(references []Reference, read func(name string, into client.Object) error) (Files, error) {
	files := Files{}
	for _, one := range references {
		given := File{}
		var into client.Object
		if one.Kind == Secret {
			given.Secret = &corev1.Secret{}
			into = given.Secret
		} else {
			given.ConfigMap = &corev1.ConfigMap{}
			into = given.ConfigMap
		}
		err := read(one.Name, into)
		if client.IgnoreNotFound(err) != nil {
			return files, fmt.Errorf("read %s %s of %s: %w", one.Kind, one.Name, one.Field, err)
		}
		if err == nil {
			files[one.String()] = given
		}
	}
	return files, nil
}

// Missing names the objects that do not exist and the fields that refer to them. It is empty if all exist.
func (f Files) Missing(references []Reference) string {
	var missing []string
	for _, one := range references {
		if _, found := f[one.String()]; !found {
			missing = append(missing, fmt.Sprintf("%s %s of %s", one.Kind, one.Name, one.Field))
		}
	}
	return strings.Join(missing, ", ")
}

// Content returns the data to which a reference refers. The API server runs in another cluster than that of its users, so kubeconfigs must not
// make it run programs or read files there.
func (f Files) Content(of Reference) ([]byte, error) {
	given := f[of.String()]
	var content []byte
	switch {
	case given.ConfigMap != nil:
		content = []byte(given.ConfigMap.Data[of.Key])
	case given.Secret != nil:
		content = given.Secret.Data[of.Key]
	}
	switch {
	case len(content) == 0:
		return nil, fmt.Errorf("%s: %s %s has no key %s", of.Field, of.Kind, of.Name, of.Key)
	case len(content) > maxSize:
		return nil, fmt.Errorf("%s: key %s of %s %s has %d bytes, more than the %d allowed", of.Field, of.Key, of.Kind, of.Name, len(content), maxSize)
	}
	if of.Key == KeyKubeconfig {
		if err := kubeconfig.CheckInline(content); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", of.Field, of.Kind, of.Name, err)
		}
	}
	return content, nil
}

// file is a file of a kube-apiserver, and where it belongs.
type file struct {
	Reference

	take func(into *kubeapiserver.Given, content []byte)
}

// filesOf returns the files to which the settings of a kube-apiserver refer. prefix is the path of the settings, with a dot.
func filesOf(server corev1beta1.KubeAPIServerConfig, prefix string) []file {
	var all []file
	add := func(kind, name, key, field string, take func(*kubeapiserver.Given, []byte)) {
		if name != "" {
			all = append(all, file{Reference{kind, name, key, prefix + field}, take})
		}
	}
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		add(ConfigMap, audit.AuditPolicy.ConfigMapRef.Name, KeyPolicy, "auditConfig.auditPolicy.configMapRef",
			func(into *kubeapiserver.Given, content []byte) { into.AuditPolicy = string(content) })
	}
	if structured := server.StructuredAuthentication; structured != nil {
		add(ConfigMap, structured.ConfigMapName, KeyConfig, "structuredAuthentication.configMapName",
			func(into *kubeapiserver.Given, content []byte) { into.Authentication = string(content) })
	}
	if structured := server.StructuredAuthorization; structured != nil {
		add(ConfigMap, structured.ConfigMapName, KeyConfig, "structuredAuthorization.configMapName",
			func(into *kubeapiserver.Given, content []byte) { into.Authorization = string(content) })
		for i, named := range structured.Kubeconfigs {
			add(Secret, named.SecretName, KeyKubeconfig, fmt.Sprintf("structuredAuthorization.kubeconfigs[%d].secretName", i),
				func(into *kubeapiserver.Given, content []byte) {
					into.AuthorizerKubeconfigs[named.AuthorizerName] = content
				})
		}
	}
	for i, plugin := range server.AdmissionPlugins {
		add(Secret, ptr.Deref(plugin.KubeconfigSecretName, ""), KeyKubeconfig, fmt.Sprintf("admissionPlugins[%d].kubeconfigSecretName", i),
			func(into *kubeapiserver.Given, content []byte) { into.AdmissionKubeconfigs[plugin.Name] = content })
	}
	return all
}

// Of returns the references in the settings of a kube-apiserver. prefix is the path of the settings, with a dot.
func Of(server corev1beta1.KubeAPIServerConfig, prefix string) []Reference {
	var all []Reference
	for _, one := range filesOf(server, prefix) {
		all = append(all, one.Reference)
	}
	return all
}

// Given returns the files to which the settings of a kube-apiserver refer. Its errors name the fields, with the prefix.
func (f Files) Given(server corev1beta1.KubeAPIServerConfig, prefix string) (kubeapiserver.Given, error) {
	given := kubeapiserver.Given{AuthorizerKubeconfigs: map[string][]byte{}, AdmissionKubeconfigs: map[string][]byte{}}
	for _, one := range filesOf(server, prefix) {
		content, err := f.Content(one.Reference)
		if err != nil {
			return given, err
		}
		one.take(&given, content)
	}
	return given, nil
}

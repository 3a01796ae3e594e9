package nodeagentauthorizer

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// configurationKey is the key in a Secret of the OperatingSystemConfig in YAML.
const configurationKey = "osc.yaml"

// operatingSystemConfig has the relevant fields of an OperatingSystemConfig of extensions.gardener.cloud/v1alpha1.
type operatingSystemConfig struct {
	Spec struct {
		Files []file `json:"files"`
	} `json:"spec"`
	Status struct {
		ExtensionFiles []file `json:"extensionFiles"`
	} `json:"status"`
}

type file struct {
	HostName *string `json:"hostName"`
	Content  struct {
		SecretRef *struct {
			Name string `json:"name"`
		} `json:"secretRef"`
	} `json:"content"`
}

// referencesOf returns the references in the configuration of a Secret. The error does not quote the data of the Secret.
func referencesOf(secret *corev1.Secret) ([]reference, error) {
	data, found := secret.Data[configurationKey]
	if !found {
		return nil, nil
	}
	if len(data) > corev1.MaxSecretSize { // an API server would not have stored it
		return nil, fmt.Errorf("the key %s of Secret %s/%s is larger than %d bytes",
			configurationKey, secret.Namespace, secret.Name, corev1.MaxSecretSize)
	}
	var config operatingSystemConfig
	if err := yaml.Unmarshal(data, &config); err != nil { // err may quote the data
		return nil, fmt.Errorf("the key %s of Secret %s/%s is not an OperatingSystemConfig in YAML",
			configurationKey, secret.Namespace, secret.Name)
	}
	var references []reference
	for _, files := range [][]file{config.Spec.Files, config.Status.ExtensionFiles} {
		for _, file := range files {
			if file.Content.SecretRef == nil || file.Content.SecretRef.Name == "" {
				continue
			}
			one := reference{secret: file.Content.SecretRef.Name}
			if file.HostName != nil {
				one.host = *file.HostName
			}
			references = append(references, one)
		}
	}
	return references, nil
}

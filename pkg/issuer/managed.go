package issuer

import (
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Managed is the value of [constants.AnnotationAuthenticationIssuer] of Shoots whose issuer the garden publishes.
const Managed = "managed"

// Keys of the Secrets with documents, and of the Secret with the host.
const (
	KeyConfiguration = "openid-config"
	KeyKeys          = "jwks"
	KeyHost          = "hostname"
)

// PublicKeys is the value of [constants.LabelDiscoveryPublic] of Secrets with documents.
const PublicKeys = "serviceaccount"

// IsManaged reports whether the annotations of a Shoot request the managed issuer.
func IsManaged(annotations map[string]string) bool {
	return annotations[constants.AnnotationAuthenticationIssuer] == Managed
}

// Path returns the path of the issuer of a Shoot: Gardener's contract with those who accept tokens.
func Path(project string, uid types.UID) string {
	return "/projects/" + project + "/shoots/" + string(uid) + "/issuer"
}

// URL returns the issuer of a Shoot.
func URL(host, project string, uid types.UID) string { return "https://" + host + Path(project, uid) }

// separator is between the parts of the name of a Secret. Names of Projects do not contain it, and UIDs neither.
const separator = "--"

// SecretName returns the name of the Secret with the documents of a Shoot, in namespace [constants.SystemShootIssuerNamespace].
func SecretName(project string, uid types.UID) string { return project + separator + string(uid) }

// UIDOf returns the UID of the Shoot in the name of a Secret, empty if there is none.
func UIDOf(name string) types.UID {
	at := strings.LastIndex(name, separator)
	if at < 0 {
		return ""
	}
	return types.UID(name[at+len(separator):])
}

// Labels returns the labels of the Secret with the documents of a Shoot.
func Labels(project, namespace, name string) map[string]string {
	return map[string]string{
		constants.LabelDiscoveryPublic: PublicKeys, constants.LabelProjectName: project,
		constants.LabelShootNamespace: namespace, constants.LabelShootName: name,
	}
}

// Host returns the host of managed issuers from the Secrets of a garden with the role [constants.RoleShootServiceAccountIssuer]. problem says why
// there is none, and what an operator does about it.
func Host(secrets []corev1.Secret) (host, problem string) {
	const fix = "an operator of the garden creates one Secret in namespace " + constants.GardenNamespace + " with the label " +
		constants.LabelGardenRole + "=" + constants.RoleShootServiceAccountIssuer + " and the host of the discovery server in the key " + KeyHost
	switch {
	case len(secrets) == 0:
		return "", "the garden has no managed issuer for tokens of ServiceAccounts: " + fix
	case len(secrets) > 1:
		return "", fmt.Sprintf("the garden has %d Secrets with a host of managed issuers: %s", len(secrets), fix)
	}
	host = string(secrets[0].Data[KeyHost])
	if errs := validation.IsDNS1123Subdomain(host); len(errs) > 0 {
		return "", fmt.Sprintf("the key %s of Secret %s of the garden is not a host name: %s", KeyHost, secrets[0].Name, fix)
	}
	return host, ""
}

// OfSecret returns the documents in a Secret, and the path of their issuer. It fails unless the labels and the issuer match the name of the Secret:
// its name decides where the documents are served.
func OfSecret(secret *corev1.Secret) (Documents, string, error) {
	project, uid := secret.Labels[constants.LabelProjectName], UIDOf(secret.Name)
	if project == "" || uid == "" || secret.Name != SecretName(project, uid) {
		return Documents{}, "", fmt.Errorf("its name is not the label %s, two dashes, and the UID of a Shoot", constants.LabelProjectName)
	}
	for _, label := range []string{constants.LabelShootNamespace, constants.LabelShootName} {
		if secret.Labels[label] == "" {
			return Documents{}, "", fmt.Errorf("it lacks the label %s", label)
		}
	}
	if secret.Labels[constants.LabelDiscoveryPublic] != PublicKeys {
		return Documents{}, "", fmt.Errorf("it lacks the label %s=%s", constants.LabelDiscoveryPublic, PublicKeys)
	}
	documents := Documents{Configuration: string(secret.Data[KeyConfiguration]), Keys: string(secret.Data[KeyKeys])}
	found, err := documents.Check()
	if err != nil {
		return Documents{}, "", err
	}
	path := Path(project, uid)
	if location, err := url.Parse(found); err != nil || location.Path != path || location.RawPath != "" {
		return Documents{}, "", fmt.Errorf("the issuer in its configuration does not end with %s", path)
	}
	return documents, path, nil
}

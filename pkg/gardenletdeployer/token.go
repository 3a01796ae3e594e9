package gardenletdeployer

import (
	"crypto/rand"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

const (
	// tokenValidity is the validity of bootstrap tokens. One that is valid for less than tokenMargin is not used any more.
	tokenValidity, tokenMargin = 24 * time.Hour, time.Hour
	// tokenLength is the number of characters of the secret part of a bootstrap token, and tokenCharacters are those that it may have.
	tokenLength     = 16
	tokenCharacters = "0123456789abcdefghijklmnopqrstuvwxyz"
	// contextName is the name of the cluster, the user and the context in kubeconfigs.
	contextName = "gardenlet"

	keyTokenID, keyTokenSecret, keyExpiration, keyDescription = "token-id", "token-secret", "expiration", "description"
)

// Kind is the kind of the object that describes a gardenlet.
type Kind string

// The kinds.
const (
	ManagedSeed Kind = "ManagedSeed"
	Gardenlet   Kind = "Gardenlet"
)

// newToken returns the Secret with a new bootstrap token for the gardenlet of an object. The garden's admission and the approval of certificates
// read the object from the description.
func newToken(kind Kind, namespace, name string, random io.Reader, now time.Time) (*corev1.Secret, error) {
	secret := make([]byte, tokenLength)
	for i := range secret {
		at, err := rand.Int(random, big.NewInt(int64(len(tokenCharacters))))
		if err != nil {
			return nil, fmt.Errorf("generate a bootstrap token: %w", err)
		}
		secret[i] = tokenCharacters[at.Int64()]
	}
	secretName := graph.TokenSecret(namespace, name)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: secretName},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			keyDescription: fmt.Appendf(nil, "A bootstrap token for the Gardenlet for %s.%s resource %s/%s.",
				v1alpha1.SchemeGroupVersion.String(), kind, namespace, name),
			keyTokenID:                       []byte(strings.TrimPrefix(secretName, graph.PrefixTokenSecret)),
			keyTokenSecret:                   secret,
			keyExpiration:                    []byte(now.Add(tokenValidity).UTC().Format(time.RFC3339)),
			"usage-bootstrap-authentication": []byte("true"),
			"usage-bootstrap-signing":        []byte("true"),
		},
	}, nil
}

// token returns the bootstrap token in a Secret, and when it expires. It is empty if there is none.
func token(secret *corev1.Secret) (string, time.Time) {
	expires, err := time.Parse(time.RFC3339, string(secret.Data[keyExpiration]))
	if err != nil || len(secret.Data[keyTokenID]) == 0 || len(secret.Data[keyTokenSecret]) == 0 {
		return "", time.Time{}
	}
	return string(secret.Data[keyTokenID]) + "." + string(secret.Data[keyTokenSecret]), expires
}

// kubeconfig returns a kubeconfig with a token.
func kubeconfig(cluster clientcmdapi.Cluster, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &cluster
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig for the first certificate: %w", err)
	}
	return content, nil
}

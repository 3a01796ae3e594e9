package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Registration is what decides whether the gardenlet of a Seed may be started with new credentials.
type Registration struct {
	// Expires is when the gardenlet's certificate expires. It is zero if unknown.
	Expires time.Time
}

// RegistrationOf returns the registration of a Seed.
func RegistrationOf(seed *corev1beta1.Seed) *Registration {
	registration := &Registration{}
	if expires := seed.Status.ClientCertificateExpirationTimestamp; expires != nil {
		registration.Expires = expires.Time
	}
	return registration
}

// MayBootstrap reports whether a gardenlet may get new credentials: its Seed does not exist, its certificate has expired, or its
// ManagedSeed or Gardenlet, with these annotations, requests it.
func MayBootstrap(seed *Registration, annotations map[string]string, now time.Time) bool {
	return seed == nil || !seed.Expires.IsZero() && seed.Expires.Before(now) ||
		annotations[constants.AnnotationGardenerOperation] == constants.OperationRenewKubeconfig
}

const (
	// PrefixTokenSecret begins the names of Secrets with bootstrap tokens, in kube-system.
	PrefixTokenSecret = "bootstrap-token-"
	// tokenIDLength is the number of characters of the ID of a bootstrap token.
	tokenIDLength = 6
)

// TokenSecret returns the name of the Secret with the bootstrap token of a ManagedSeed or Gardenlet. It is the one of Gardener.
func TokenSecret(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "--" + strings.TrimPrefix(name, PrefixSelfHosted)))
	return PrefixTokenSecret + hex.EncodeToString(sum[:])[:tokenIDLength]
}

// BootstrapBinding returns the name of the ClusterRoleBinding of a ServiceAccount with which a gardenlet requests its certificate.
func BootstrapBinding(namespace, account string) string {
	return "gardener.cloud:system:seed-bootstrapper:" + namespace + ":" + account
}

// selfHosted returns the name of the self-hosted Shoot of a Gardenlet.
func selfHosted(name string) (string, bool) { return strings.CutPrefix(name, PrefixSelfHosted) }

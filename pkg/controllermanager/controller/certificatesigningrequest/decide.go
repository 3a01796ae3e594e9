package certificatesigningrequest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/csrapprover"
)

const (
	tokenUserPrefix   = "system:bootstrap:"
	tokensGroup       = "system:bootstrappers"
	accountUserPrefix = "system:serviceaccount:" + constants.GardenNamespace + ":" + constants.PrefixBootstrapServiceAccount
)

// usages are the usages of the client certificate of a gardenlet.
var usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}

// Request is a request for the client certificate of the gardenlet of a Seed.
type Request struct {
	// Seed is the name of the Seed.
	Seed string
	// Flaw is why the request is denied whatever the garden contains; empty for none.
	Flaw string
	// Bootstrap is set if the request was sent with bootstrap credentials, and not by the gardenlet itself or an administrator.
	Bootstrap bool
	// TokenID is the ID of the bootstrap token of the requester; empty for others.
	TokenID string
}

// Read returns the content of a request, and false if it is not for the client certificate of a gardenlet.
func Read(spec *certificatesv1.CertificateSigningRequestSpec) (Request, bool) {
	if spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return Request{}, false
	}
	name, flaw := csrapprover.ParseClientRequest(spec, constants.SeedsGroup)
	seed, isSeed := strings.CutPrefix(name, constants.PrefixSeedUser)
	if !isSeed || seed == "" {
		return Request{}, false
	}
	r := Request{Seed: seed, Flaw: flaw}
	if r.Flaw == "" && !slices.Equal(slices.Sorted(slices.Values(spec.Usages)), usages) {
		r.Flaw = fmt.Sprintf("the usages are %q; they must be %q", spec.Usages, usages)
	}
	if r.Flaw == "" {
		r.Flaw = r.readUser(spec, name)
	}
	return r, true
}

// readUser sets what depends on the requester. It returns why the requester may not request the certificate with this name.
func (r *Request) readUser(spec *certificatesv1.CertificateSigningRequestSpec, name string) (flaw string) {
	token, isToken := strings.CutPrefix(spec.Username, tokenUserPrefix)
	account, isAccount := strings.CutPrefix(spec.Username, accountUserPrefix)
	isGardenlet := strings.HasPrefix(spec.Username, constants.PrefixSeedUser)
	switch {
	case isGardenlet || slices.Contains(spec.Groups, constants.SeedsGroup):
		if spec.Username != name {
			return fmt.Sprintf("the user %q is not the gardenlet of Seed %s", spec.Username, r.Seed)
		}
	case isToken != slices.Contains(spec.Groups, tokensGroup):
		return fmt.Sprintf("the user %q and the groups %q are not those of a bootstrap token", spec.Username, spec.Groups)
	case isToken:
		r.Bootstrap, r.TokenID = true, token
	case isAccount && account != r.Seed:
		return fmt.Sprintf("the ServiceAccount %s%s is for another Seed", constants.PrefixBootstrapServiceAccount, account)
	case isAccount:
		r.Bootstrap = true
	}
	return ""
}

// Facts are the objects of the garden on which the decision about a bootstrap depends.
type Facts struct {
	// Description of the bootstrap token; empty if it has none or does not exist any more.
	Description string
	// Seed is nil if it does not exist.
	Seed *corev1beta1.Seed
	// Renewing is set if an operator requested a new kubeconfig for the gardenlet.
	Renewing bool
}

// Decide returns why a request is denied, or an empty text to approve it.
func Decide(r Request, facts Facts, now time.Time) string {
	switch {
	case r.Flaw != "":
		return r.Flaw
	case !r.Bootstrap:
		return ""
	case r.TokenID != "" && seedOf(facts.Description) != r.Seed:
		return fmt.Sprintf("the description of the bootstrap token %s does not name Seed %s: write \"Bootstrap token for the gardenlet of Seed %s\"", r.TokenID, r.Seed, r.Seed)
	case facts.Seed == nil || facts.Renewing:
		return ""
	}
	if until := facts.Seed.Status.ClientCertificateExpirationTimestamp; until != nil && now.Before(until.Time) {
		return fmt.Sprintf("the gardenlet of Seed %s has a certificate that is valid until %s: to replace it, annotate the Seed with %s=%s",
			r.Seed, until.UTC().Format(time.RFC3339), constants.AnnotationGardenerOperation, constants.OperationRenewKubeconfig)
	}
	return ""
}

// named finds the Seed in the description of a bootstrap token. Those of ManagedSeeds and Gardenlets name the resource, which has
// the name of its Seed; operators write "Seed name".
var named = regexp.MustCompile("(?:(?:ManagedSeed|Gardenlet) resource " + constants.GardenNamespace + "/|\\bSeed `?)([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)")

// seedOf returns the only Seed that the description of a bootstrap token names, or an empty text if it names none or several.
func seedOf(description string) string {
	var found []string
	for _, match := range named.FindAllStringSubmatch(description, -1) {
		found = append(found, match[1])
	}
	if slices.Sort(found); len(slices.Compact(found)) != 1 {
		return ""
	}
	return found[0]
}

package shootdns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// randomLength is how much longer the first label of a domain is than the prefix of a name that the server generates. The
// name is not known yet.
const randomLength = 5

// defaultDomains returns the default domains of a Seed, or else those of the garden, the preferred one first.
func defaultDomains(ctx context.Context, garden *admission.Garden, seedName *string) ([]string, error) {
	if seedName != nil {
		seed, err := garden.Seeds.Get(ctx, "", *seedName)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("spec.seedName: the Seed %q does not exist", *seedName)
		}
		if err != nil {
			return nil, err
		}
		if len(seed.Spec.DNS.Defaults) > 0 {
			var domains []string
			for _, one := range seed.Spec.DNS.Defaults {
				domains = append(domains, one.Domain)
			}
			return domains, nil
		}
	}
	secrets, err := garden.SecretsOfGarden(ctx, constants.LabelGardenRole, constants.RoleDefaultDomain)
	if err != nil {
		return nil, err
	}
	return byPriority(secrets), nil
}

// byPriority returns the domains of Secrets. The highest priority is first; without a valid number it is 0.
func byPriority(secrets []metav1.PartialObjectMetadata) []string {
	priority := func(secret metav1.PartialObjectMetadata) int {
		value, err := strconv.Atoi(secret.Annotations[constants.AnnotationDNSDefaultDomainPriority])
		if err != nil {
			return 0
		}
		return value
	}
	sorted := slices.SortedFunc(slices.Values(secrets), func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(a.Name, b.Name))
	})
	var domains []string
	for _, secret := range sorted {
		if domain := secret.Annotations[constants.AnnotationDNSDomain]; domain != "" {
			domains = append(domains, domain)
		}
	}
	return domains
}

// matching returns the longest default domain that a domain is below; empty if there is none.
func matching(domains []string, domain string) string {
	found := ""
	for _, one := range domains {
		if strings.HasSuffix(domain, "."+one) && len(one) > len(found) {
			found = one
		}
	}
	return found
}

// label returns the first label of the domain of a Shoot.
func label(shoot *gardencorev1beta1.Shoot) string {
	if shoot.Name != "" {
		return shoot.Name
	}
	return rand.String(len(shoot.GenerateName) + randomLength)
}

// wrongFormat returns which domain a Shoot must have below the part of its Project; empty if it has it.
func wrongFormat(shoot *gardencorev1beta1.Shoot, suffix string) string {
	domain := *shoot.Spec.DNS.Domain
	if shoot.GenerateName != "" {
		if strings.HasSuffix(domain, "."+suffix) {
			return ""
		}
		return "below " + suffix
	}
	if wanted := shoot.Name + "." + suffix; domain != wanted {
		return wanted
	}
	return ""
}

func isUnmanaged(dns *gardencorev1beta1.DNS) bool {
	return dns != nil && slices.ContainsFunc(dns.Providers, func(provider gardencorev1beta1.DNSProvider) bool {
		return ptr.Deref(provider.Type, "") == gardencorev1beta1.DNSUnmanaged
	})
}

// restorePrimary marks the primary provider of the stored Shoot again if no provider is marked.
func restorePrimary(dns, old *gardencorev1beta1.DNS) {
	before := admission.PrimaryProvider(old)
	if before == nil || dns == nil || admission.PrimaryProvider(dns) != nil {
		return
	}
	for i := range dns.Providers {
		provider := &dns.Providers[i]
		if ptr.Deref(provider.Type, "") == ptr.Deref(before.Type, "") && credentials(provider) == credentials(before) {
			provider.Primary = ptr.To(true)
			return
		}
	}
}

// credentials returns the name of the credentials of a provider, from either field.
func credentials(provider *gardencorev1beta1.DNSProvider) string {
	if provider.CredentialsRef != nil {
		return provider.CredentialsRef.Name
	}
	return ptr.Deref(provider.SecretName, "")
}

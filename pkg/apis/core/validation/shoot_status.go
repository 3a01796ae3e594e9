package validation

import (
	"net/url"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// ValidateShootStatusUpdate checks the status of a Shoot that replaces another.
func ValidateShootStatusUpdate(shoot, old *v1beta1.Shoot) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&shoot.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path, status, before := field.NewPath("status"), &shoot.Status, &old.Status
	if before.UID != "" {
		errs = append(errs, immutable(status.UID, before.UID, path.Child("uid"))...)
	}
	if before.TechnicalID != "" {
		errs = append(errs, immutable(status.TechnicalID, before.TechnicalID, path.Child("technicalID"))...)
	}
	if before.ClusterIdentity != nil && *before.ClusterIdentity != "" {
		errs = append(errs, immutable(status.ClusterIdentity, before.ClusterIdentity, path.Child("clusterIdentity"))...)
	}
	errs = append(errs, validateAdvertisedAddresses(status.AdvertisedAddresses, path.Child("advertisedAddresses"))...)
	if networking := status.Networking; networking != nil {
		for name, ranges := range map[string][]string{
			"pods": networking.Pods, "nodes": networking.Nodes, "services": networking.Services, "egressCIDRs": networking.EgressCIDRs,
		} {
			for i, value := range ranges {
				_, found := prefixOf(value, path.Child("networking", name).Index(i))
				errs = append(errs, found...)
			}
		}
	}
	if credentials := status.Credentials; credentials != nil && credentials.EncryptionAtRest != nil {
		errs = append(errs, oneOf(credentials.EncryptionAtRest.Provider.Type, path.Child("credentials", "encryptionAtRest", "provider", "type"),
			v1beta1.EncryptionProviderTypeAESCBC, v1beta1.EncryptionProviderTypeAESGCM, v1beta1.EncryptionProviderTypeSecretbox)...)
	}
	return errs
}

func validateAdvertisedAddresses(addresses []v1beta1.ShootAdvertisedAddress, path *field.Path) field.ErrorList {
	errs := unique(addresses, path, "name", func(address v1beta1.ShootAdvertisedAddress) string { return address.Name })
	for i, address := range addresses {
		at := path.Index(i)
		errs = append(errs, required(address.Name, at.Child("name"))...)
		parsed, err := url.Parse(address.URL)
		if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" ||
			parsed.Path != "" && address.Name != constants.AdvertisedAddressServiceAccountIssuer {
			errs = append(errs, field.Invalid(at.Child("url"), address.URL, "must be a https URL with a host alone, and a port if need be; that of an issuer may have a path"))
		}
	}
	return errs
}

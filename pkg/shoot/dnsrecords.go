package shoot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/credentials"
)

// Names of the bundles with one DNSRecord and its credentials each.
const (
	prefixRecord         = "dnsrecord-"
	bundleInternalRecord = prefixRecord + constants.AdvertisedAddressInternal
	bundleExternalRecord = prefixRecord + constants.AdvertisedAddressExternal
	bundleIngressRecord  = prefixRecord + purposeIngress
	// purposeIngress is the purpose of the record for the addon with the ingress controller (Gardener).
	purposeIngress = "ingress"
)

const (
	// recordTTL is the default time to live of records of API servers, in seconds (Gardener).
	recordTTL = 120
	// recordTimeout is how long an operation of a DNSRecord may take (Gardener).
	recordTimeout = 2 * time.Minute
	// choiceRecord of a bundle is the type and name of its record. They are immutable, so a change deletes the record and
	// then creates a new one.
	choiceRecord = "record"
)

// Domain is a default domain of the garden, for Shoots without their own domain.
type Domain struct {
	Name, Type string
	Zone       *string
	// Secret of the garden with the domain and credentials.
	Secret client.ObjectKey
}

// record is a DNS record for the API server.
type record struct {
	// Purpose is internal, external or ingress. Host is the name of the record, and Addresses are those to which it points.
	Purpose, Host string
	Addresses     []string
	// Type is the type of the DNS service. Zone is its zone, or nil if the extension determines it.
	Type string
	Zone *string
	// Credentials of the DNS service.
	Credentials reference
	// Problem is the reason why the record cannot be created, or empty.
	Problem string
}

// records returns the DNS records of the Shoot: those of its advertised addresses, and that of its ingress controller, except records that users manage.
func (in Inputs) records() []record {
	var records []record
	if internal := in.Seed.Spec.DNS.Internal; internal != nil && isManaged(internal.Type) {
		records = append(records, record{
			Purpose: constants.AdvertisedAddressInternal, Host: in.internalHost(), Addresses: in.Addresses, Type: internal.Type, Zone: internal.Zone,
			Credentials: referenceOf(internal.CredentialsRef),
		})
	}
	if external := in.externalRecord(); external != nil {
		external.Purpose, external.Host, external.Addresses = constants.AdvertisedAddressExternal, in.externalHost(), in.Addresses
		records = append(records, *external)
		if in.hasIngressController() {
			ingress := *external
			ingress.Purpose, ingress.Host, ingress.Addresses = purposeIngress, "*.ingress."+*in.Shoot.Spec.DNS.Domain, in.ingressAddresses
			records = append(records, ingress)
		}
	}
	return records
}

// isManaged reports whether a DNS extension manages records of this type.
func isManaged(kind string) bool { return kind != "" && kind != corev1beta1.DNSUnmanaged }

// referenceOf returns the reference with defaults for the kind and namespace.
func referenceOf(given corev1.ObjectReference) reference {
	return reference{kind: cmp.Or(given.Kind, kindSecret), namespace: cmp.Or(given.Namespace, constants.GardenNamespace), name: given.Name}
}

// externalRecord returns the record for the domain of the Shoot, without its name. Its DNS service is that of the
// matching default domain, otherwise that of the primary provider. It is nil if the Shoot has no domain, or if the domain
// is not managed.
func (in Inputs) externalRecord() *record {
	if in.externalHost() == "" {
		return nil
	}
	dns := in.Shoot.Spec.DNS
	if found := in.defaultDomain(*dns.Domain); found != nil {
		if !isManaged(found.Type) {
			return nil
		}
		return found
	}
	at := slices.IndexFunc(dns.Providers, func(provider corev1beta1.DNSProvider) bool { return ptr.Deref(provider.Primary, false) })
	if at < 0 {
		return &record{Problem: "spec.dns.domain is not in a default domain, and spec.dns.providers has no primary provider: " +
			"add one, of type unmanaged if you create the record yourself"}
	}
	provider := dns.Providers[at]
	found := &record{Type: ptr.Deref(provider.Type, "")}
	if provider.Zones != nil && len(provider.Zones.Include) == 1 {
		found.Zone = &provider.Zones.Include[0]
	}
	switch ref, secret := provider.CredentialsRef, ptr.Deref(provider.SecretName, ""); {
	case found.Type == corev1beta1.DNSUnmanaged:
		return nil
	case ref != nil:
		found.Credentials = reference{kind: ref.Kind, namespace: in.Shoot.Namespace, name: ref.Name}
	case secret != "":
		found.Credentials = reference{kind: kindSecret, namespace: in.Shoot.Namespace, name: secret}
	}
	if found.Type == "" || found.Credentials.name == "" {
		found.Problem = fmt.Sprintf("spec.dns.providers[%d] needs type and credentialsRef to make the record of spec.dns.domain", at)
	}
	return found
}

// defaultDomain returns the DNS service of the longest matching default domain, or nil. Default domains of the garden
// apply only if the Seed has none.
func (in Inputs) defaultDomain(domain string) *record {
	var found *record
	longest := ""
	try := func(suffix string, serving record) {
		if strings.HasSuffix(domain, "."+suffix) && len(suffix) > len(longest) {
			longest, found = suffix, &serving
		}
	}
	for _, each := range in.Seed.Spec.DNS.Defaults {
		try(each.Domain, record{Type: each.Type, Zone: each.Zone, Credentials: referenceOf(each.CredentialsRef)})
	}
	if len(in.Seed.Spec.DNS.Defaults) == 0 {
		for _, each := range in.DefaultDomains {
			credentials := reference{kind: kindSecret, namespace: each.Secret.Namespace, name: each.Secret.Name}
			try(each.Name, record{Type: each.Type, Zone: each.Zone, Credentials: credentials})
		}
	}
	return found
}

// recordParts returns the parts with the DNS records. When a Shoot hibernates, its records are deleted after all programs have stopped.
func (in Inputs) recordParts() []table.Part {
	var parts []table.Part
	for _, purpose := range []string{constants.AdvertisedAddressInternal, constants.AdvertisedAddressExternal, purposeIngress} {
		part := table.Part{
			Name: prefixRecord + purpose, Absent: "the Shoot has no such record", Removed: true,
			Unchanged: in.hibernated() && !in.Shoot.Status.IsHibernated, Needs: []table.Need{table.Applied(bundleAPIServerService, bundleExposure)},
			DeletedAfter: []string{}, Outlives: []string{bundleAPIServer}, Confirmed: true,
		}
		for _, wanted := range in.records() {
			if wanted.Purpose == purpose && !in.hibernated() && !in.isReplaced(wanted) {
				part.Absent, part.Objects, part.Adjust = "", in.record(wanted), in.adjustRecord(wanted)
				part.Unknown = table.Join(in.heldForDeletion(), in.unknownRecord(wanted))
			}
		}
		if purpose == purposeIngress {
			part = in.ofIngress(part)
			if part.Absent != "" && !slices.Contains(in.Emitted, in.key(part.Name)) {
				continue
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// isReplaced reports whether the existing record has another type or name.
func (in Inputs) isReplaced(wanted record) bool {
	present := in.RecordsMade[prefixRecord+wanted.Purpose]
	return present != "" && len(wanted.Addresses) > 0 && present != in.identityOf(wanted)
}

// identityOf returns the immutable fields of a record: its type and name.
func (in Inputs) identityOf(wanted record) string {
	kind, _ := dnsvalues.Of(wanted.Addresses)
	return string(kind) + " " + wanted.Host
}

// unknownRecord names the inputs of a record that are missing.
func (in Inputs) unknownRecord(wanted record) string {
	switch {
	case wanted.Problem != "":
		return "" // record returns the error
	case len(wanted.Addresses) == 0:
		return in.missingAddress()
	}
	return in.unknownReferences("for the "+wanted.Purpose+" DNS record", wanted.Credentials)
}

// recordTTL returns the time to live of records in seconds: controllers.shoot.dnsEntryTTLSeconds of gardenlet's configuration.
func (in Inputs) recordTTL() int64 {
	if in.Config == nil || in.Config.Controllers == nil || in.Config.Controllers.Shoot == nil {
		return recordTTL
	}
	return ptr.Deref(in.Config.Controllers.Shoot.DNSEntryTTLSeconds, recordTTL)
}

// record returns the function for the objects of a DNS record.
func (in Inputs) record(wanted record) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		if wanted.Problem != "" {
			return nil, fmt.Errorf("the DNS record of %s: %s", wanted.Host, wanted.Problem)
		}
		name := in.Shoot.Name + "-" + wanted.Purpose
		secret, digest, err := in.credentialsFor(wanted.Credentials, client.ObjectKey{Namespace: in.Namespace, Name: prefixRecord + name})
		if err != nil {
			return nil, fmt.Errorf("the DNS record of %s: %w", wanted.Host, err)
		}
		kind, values := dnsvalues.Of(wanted.Addresses)
		return []client.Object{secret, &extensionsv1alpha1.DNSRecord{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: name, Annotations: map[string]string{
				constants.AnnotationGardenerOperation: constants.OperationReconcile, constants.AnnotationDNSIPStack: in.ipStack(),
				credentials.AnnotationDigest: digest,
			}},
			Spec: extensionsv1alpha1.DNSRecordSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: wanted.Type}, SecretRef: corev1.SecretReference{
					Namespace: secret.Namespace, Name: secret.Name,
				},
				Zone: wanted.Zone, Name: wanted.Host, RecordType: kind, Values: values, TTL: ptr.To(in.recordTTL()),
			},
		}}, nil
	}
}

// adjustRecord configures the bundle of a DNS record: each change triggers the extension, and only changes.
func (in Inputs) adjustRecord(wanted record) func(*flow.Bundle) {
	return func(bundle *flow.Bundle) {
		flow.ForExtension(corev1beta1.KindDNSRecord)(bundle)
		bundle.Choices = map[string]string{choiceRecord: in.identityOf(wanted)}
	}
}

// ipStack returns the value of the annotation with the IP families of the cluster.
func (in Inputs) ipStack() string {
	var families []corev1beta1.IPFamily
	if networking := in.Shoot.Spec.Networking; networking != nil {
		families = networking.IPFamilies
	}
	switch {
	case len(families) > 1:
		return "dual-stack"
	case slices.Contains(families, corev1beta1.IPFamilyIPv6):
		return "ipv6"
	}
	return "ipv4"
}

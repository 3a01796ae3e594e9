package garden

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

const (
	// prefixRecord is the prefix of the names of bundles with one DNSRecord each.
	prefixRecord = "dnsrecord-"
	// classGarden is the class of the extension objects of a garden.
	classGarden = extensionsv1alpha1.ExtensionClassGarden
	// recordTTL is the time to live of records, in seconds (Gardener).
	recordTTL = 120
)

// record is a DNS record for the API server of the virtual garden.
type record struct {
	host     string
	provider operatorv1alpha1.DNSProvider
	// problem is why the record cannot be made, empty if it can.
	problem string
}

// name returns the name of the DNSRecord, which has the type, because that is immutable.
func (r record) name() string {
	return strings.ReplaceAll(strings.ReplaceAll(r.host, "*", "wildcard"), ".", "-") + "-" + r.provider.Type
}

// records returns the DNS records of the Garden: those of the API server in each domain of the virtual garden and, if a gateway serves them, those of all
// hosts of the domains for Ingresses. There are none without spec.dns.
func (in Inputs) records() []record {
	if in.Garden.Spec.DNS == nil {
		return nil
	}
	var records []record
	for i, domain := range in.virtual().DNS.Domains {
		field := fmt.Sprintf("spec.virtualCluster.dns.domains[%d].provider", i)
		records = append(records, in.recordOf(constants.PrefixAPIServerHost, domain, field), in.recordOf("gardener.", domain, field))
	}
	if mode, err := exposure.ModeOfGarden(in.Garden); err == nil && mode != exposure.Istio {
		return records // those that exist stay if the mode is not known
	}
	for i, domain := range in.Garden.Spec.RuntimeCluster.Ingress.Domains {
		records = append(records, in.recordOf("*.", domain, fmt.Sprintf("spec.runtimeCluster.ingress.domains[%d].provider", i)))
	}
	return records
}

// recordOf returns the record of a host in a domain. field is the one that names the provider.
func (in Inputs) recordOf(host string, domain operatorv1alpha1.DNSDomain, field string) record {
	wanted := ptr.Deref(domain.Provider, "")
	at := slices.IndexFunc(in.Garden.Spec.DNS.Providers, func(p operatorv1alpha1.DNSProvider) bool { return p.Name == wanted })
	if at < 0 {
		return record{host: host + domain.Name, problem: fmt.Sprintf("%s: spec.dns.providers has no %q", field, wanted)}
	}
	return record{host: host + domain.Name, provider: in.Garden.Spec.DNS.Providers[at]}
}

// recordNames returns the names of the bundles of records: of those that are wanted, and of those that exist. It is never nil, because nil stands for
// another order of deletion.
func (in Inputs) recordNames() []string {
	names := []string{}
	for _, wanted := range in.records() {
		names = append(names, prefixRecord+wanted.name())
	}
	for _, key := range in.Emitted {
		if strings.HasPrefix(key.Name, prefixRecord) && !slices.Contains(names, key.Name) {
			names = append(names, key.Name)
		}
	}
	return names
}

// recordParts returns the parts with the DNS records. Records that are not wanted any more are deleted.
func (in Inputs) recordParts() []table.Part {
	var parts []table.Part
	for _, wanted := range in.records() {
		unknown := ""
		if len(in.Addresses) == 0 {
			unknown = "the Service of the virtual garden's API server has no address yet"
		}
		parts = append(parts, table.Part{
			Name: prefixRecord + wanted.name(), Objects: in.record(wanted), Unknown: unknown, Confirmed: true, Adjust: flow.ForExtension(corev1beta1.KindDNSRecord),
			Needs: []table.Need{table.Applied(bundleServerService, bundleExtensionKinds)}, DeletedAfter: []string{},
		})
	}
	for _, name := range in.recordNames() {
		if !slices.ContainsFunc(parts, func(part table.Part) bool { return part.Name == name }) {
			parts = append(parts, table.Part{Name: name, Absent: "the Garden has no such domain", Removed: true, Confirmed: true, DeletedAfter: []string{}})
		}
	}
	return parts
}

// record returns the function for the objects of a record.
func (in Inputs) record(wanted record) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		if wanted.problem != "" {
			return nil, fmt.Errorf("the DNS record of %s: %s", wanted.host, wanted.problem)
		}
		kind, values := dnsvalues.Of(in.Addresses)
		return []client.Object{&extensionsv1alpha1.DNSRecord{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: in.Namespace, Name: wanted.name(), Labels: map[string]string{"origin": identity},
				Annotations: map[string]string{constants.AnnotationGardenerOperation: constants.OperationReconcile},
			},
			Spec: extensionsv1alpha1.DNSRecordSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: wanted.provider.Type, Class: ptr.To(classGarden), ProviderConfig: wanted.provider.ProviderConfig},
				SecretRef:   corev1.SecretReference{Namespace: in.Namespace, Name: wanted.provider.SecretRef.Name},
				Name:        wanted.host, RecordType: kind, Values: values, TTL: ptr.To[int64](recordTTL),
			},
		}}, nil
	}
}

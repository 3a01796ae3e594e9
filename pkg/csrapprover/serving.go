package csrapprover

import (
	"fmt"
	"maps"

	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"
)

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
)

// decideServing decides a request for the serving certificate of a kubelet. The rules and their order are those of
// gardener-resource-manager. In addition, it checks the form, the group of the user, the rest of the subject, other
// alternative names and the usages.
func decideServing(spec *certificatesv1.CertificateSigningRequestSpec, content content, facts *facts) decision {
	if content.flaw != "" {
		return denied(ofKubelet, classForm, content.flaw)
	}
	name, class, why := servingNode(spec, content)
	if why != "" {
		return denied(ofKubelet, class, why)
	}
	found, known := facts.nodes[name]
	if !known {
		return asking(ofKubelet, aboutNode, name)
	}
	if !found.found {
		return denied(ofKubelet, classNode, fmt.Sprintf("Node %q does not exist", name))
	}
	if facts.withMachines {
		machines, known := facts.machinesOf[name]
		if !known {
			return asking(ofKubelet, aboutMachinesOf, name)
		}
		if len(machines) != 1 {
			return denied(ofKubelet, classMachine, fmt.Sprintf("the Node %q has %d Machines (%s); it must have exactly one",
				name, len(machines), quoteAll(machines)))
		}
	}
	if why := compareAddresses(content, found.addresses); why != "" {
		return denied(ofKubelet, classNodeAddresses, fmt.Sprintf("%s in the status of the Node %q", why, name))
	}
	return approved(ofKubelet)
}

// nodeOfUser returns the name of the Node that the API server authenticated as the user; empty if the user is not a
// Node.
func nodeOfUser(spec *certificatesv1.CertificateSigningRequestSpec) string {
	name, isNode := strings.CutPrefix(spec.Username, nodeUserPrefix)
	if !isNode || !slices.Contains(spec.Groups, nodesGroup) || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// servingNode returns the name of the requesting Node. If the request must be denied regardless of the state of the
// cluster, it returns the reason and its class.
func servingNode(spec *certificatesv1.CertificateSigningRequestSpec, content content) (name, class, why string) {
	name, isNode := strings.CutPrefix(spec.Username, nodeUserPrefix)
	switch {
	case !isNode:
		return "", classUser, fmt.Sprintf("the user %s does not begin with %q", quote(spec.Username), nodeUserPrefix)
	case !slices.Contains(spec.Groups, nodesGroup):
		return "", classUser, fmt.Sprintf("the user %s is not in the group %q", quote(spec.Username), nodesGroup)
	case len(content.DNSNames)+len(content.IPAddresses) == 0:
		return "", classNames, "the request contains neither DNS names nor IP addresses"
	case content.Subject.CommonName != spec.Username:
		return "", classCommonName, fmt.Sprintf("the common name %s is not the user %s",
			quote(content.Subject.CommonName), quote(spec.Username))
	case content.flawOfSubject(nodesGroup) != "":
		return "", classSubject, content.flawOfSubject(nodesGroup)
	case len(content.EmailAddresses)+len(content.URIs) > 0:
		return "", classNames, "the request contains email addresses or URIs"
	case !isServingUsage(spec.Usages):
		return "", classUsages, fmt.Sprintf("the usages are %s; they must be %q and %q, and may be %q", usagesText(spec.Usages),
			certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth, certificatesv1.UsageKeyEncipherment)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "", classNode, fmt.Sprintf("%s cannot be the name of a Node", quote(name))
	}
	return name, "", ""
}

// isServingUsage is the rule of kube-controller-manager, which does not sign other usages.
func isServingUsage(usages []certificatesv1.KeyUsage) bool {
	return only(usages, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth) &&
		slices.Contains(usages, certificatesv1.UsageDigitalSignature) && slices.Contains(usages, certificatesv1.UsageServerAuth)
}

// only reports whether all usages are allowed.
func only(usages []certificatesv1.KeyUsage, allowed ...certificatesv1.KeyUsage) bool {
	return !slices.ContainsFunc(usages, func(usage certificatesv1.KeyUsage) bool { return !slices.Contains(allowed, usage) })
}

func usagesText(usages []certificatesv1.KeyUsage) string {
	texts := make([]string, 0, len(usages))
	for _, usage := range usages {
		texts = append(texts, string(usage))
	}
	return quoteAll(texts)
}

// compareAddresses describes the difference between the alternative names of a request and the addresses of its Node;
// empty if there is none.
func compareAddresses(content content, addresses []corev1.NodeAddress) string {
	wantNames, wantIPs, why := alternativeNames(addresses)
	if why != "" {
		return why
	}
	names, ips := set{}, set{}
	for _, name := range content.DNSNames {
		names.add(name)
	}
	for _, ip := range content.IPAddresses {
		ips.add(ip.String())
	}
	switch {
	case !maps.Equal(names, wantNames):
		return fmt.Sprintf("the DNS names of the request are %s, but %s", names, wantNames)
	case !maps.Equal(ips, wantIPs):
		return fmt.Sprintf("the IP addresses of the request are %s, but %s", ips, wantIPs)
	}
	return ""
}

// alternativeNames returns the names that a kubelet requests for the addresses of its Node. A host name that is an IP
// address counts as one, and empty addresses are ignored. If an IP address cannot be parsed, why describes it.
func alternativeNames(addresses []corev1.NodeAddress) (names, ips set, why string) {
	names, ips = set{}, set{}
	for _, address := range addresses {
		if address.Address == "" {
			continue
		}
		// The kubelet uses this lenient parser too.
		ip := netutils.ParseIPSloppy(address.Address)
		switch address.Type {
		case corev1.NodeHostName:
			if ip != nil {
				ips.add(ip.String())
			} else {
				names.add(address.Address)
			}
		case corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			names.add(address.Address)
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if ip == nil {
				return nil, nil, fmt.Sprintf("%s is not an IP address, but has the type %s", quote(address.Address), address.Type)
			}
			ips.add(ip.String())
		}
	}
	return names, ips, ""
}

// set is a set of texts.
type set map[string]struct{}

func (s set) add(text string) { s[text] = struct{}{} }

// String returns the sorted texts for a message.
func (s set) String() string { return quoteAll(slices.Sorted(maps.Keys(s))) }

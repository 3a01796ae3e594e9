package csrapprover

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	bootstrapUserPrefix = "system:bootstrap:"
	bootstrapGroup      = "system:bootstrappers"

	nodeAgentPrefix = "gardener.cloud:node-agent:machine:"
	nodeAgentsGroup = "gardener.cloud:node-agents"
	// nodeAgentServiceAccount is the identity of node agents before they used certificates.
	nodeAgentServiceAccount = "system:serviceaccount:kube-system:gardener-node-agent"

	gardenadmPrefix = "gardener.cloud:gardenadm:shoot:"
	gardenadmGroup  = "gardener.cloud:system:shoots"
)

// decideClient decides a request for a client certificate of the API server if its common name is that of a node agent
// or of gardenadm. It has no opinion on others.
func decideClient(spec *certificatesv1.CertificateSigningRequestSpec, content content, facts *facts) decision {
	switch {
	case content.tooLarge:
		return decision{} // the requester is unknown
	case content.CertificateRequest == nil:
		return denied(ofUnknown, classForm, content.flaw)
	}
	if name, ok := strings.CutPrefix(content.Subject.CommonName, nodeAgentPrefix); ok {
		return decideNodeAgent(spec, content, facts, name)
	}
	if strings.HasPrefix(content.Subject.CommonName, gardenadmPrefix) {
		return decideGardenadm(spec, content)
	}
	return decision{}
}

// decideNodeAgent decides a request for the client certificate of the node agent of a Machine.
func decideNodeAgent(spec *certificatesv1.CertificateSigningRequestSpec, content content, facts *facts, name string) decision {
	if class, why := flawOfClient(spec, content, nodeAgentsGroup); why != "" {
		return denied(ofNodeAgent, class, why)
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return denied(ofNodeAgent, classMachine, quote(name)+" cannot be the name of a Machine")
	}
	isAgent, isMigration := strings.HasPrefix(spec.Username, nodeAgentPrefix), spec.Username == nodeAgentServiceAccount
	switch {
	case isAgent && spec.Username != content.Subject.CommonName:
		return denied(ofNodeAgent, classUser, fmt.Sprintf("the common name %s is not the user %s",
			quote(content.Subject.CommonName), quote(spec.Username)))
	case isMigration && !facts.withMachines:
		return denied(ofNodeAgent, classUser, fmt.Sprintf("the user is %q, for which a Machine is needed, "+
			"but no namespace of Machines is configured (controllers.csrApprover.machineNamespace)", nodeAgentServiceAccount))
	case !isAgent && !isMigration && !isBootstrapper(spec):
		return denied(ofNodeAgent, classUser, fmt.Sprintf("the user %s may not request it; only a bootstrap token, the node agent itself, "+
			"and the ServiceAccount kube-system/gardener-node-agent may", quote(spec.Username)))
	}
	nodeName := name // without Machines, the name is that of the Node
	if facts.withMachines {
		machine, known := facts.machines[name]
		if !known {
			return asking(ofNodeAgent, aboutMachine, name)
		}
		if !machine.found {
			return denied(ofNodeAgent, classMachine, fmt.Sprintf("Machine %q does not exist", name))
		}
		nodeName = machine.node
	}
	switch {
	case isAgent:
		return approved(ofNodeAgent)
	case isMigration:
		if nodeName == "" {
			return denied(ofNodeAgent, classMachine, fmt.Sprintf("the Machine %q has no Node", name))
		}
		return approved(ofNodeAgent)
	}
	return decideBootstrap(facts, name, nodeName)
}

// decideBootstrap decides the first certificate of a node agent. A bootstrap token is sufficient only for a Machine
// that does not have a Node yet.
func decideBootstrap(facts *facts, name, nodeName string) decision {
	if nodeName == "" {
		return approved(ofNodeAgent)
	}
	found, known := facts.nodes[nodeName]
	if !known {
		return asking(ofNodeAgent, aboutNode, nodeName)
	}
	if found.found {
		return denied(ofNodeAgent, classNode,
			fmt.Sprintf("the Machine %q already has the Node %q, so a bootstrap token is not sufficient", name, nodeName))
	}
	return approved(ofNodeAgent)
}

// decideGardenadm decides a request for the client certificate with which gardenadm connects a self-hosted shoot.
func decideGardenadm(spec *certificatesv1.CertificateSigningRequestSpec, content content) decision {
	if class, why := flawOfClient(spec, content, gardenadmGroup); why != "" {
		return denied(ofGardenadm, class, why)
	}
	if !isBootstrapper(spec) {
		return denied(ofGardenadm, classUser,
			fmt.Sprintf("the user %s may not request it; only a bootstrap token may", quote(spec.Username)))
	}
	return approved(ofGardenadm)
}

// isBootstrapper reports whether the requester authenticated with a bootstrap token.
func isBootstrapper(spec *certificatesv1.CertificateSigningRequestSpec) bool {
	return strings.HasPrefix(spec.Username, bootstrapUserPrefix) && slices.Contains(spec.Groups, bootstrapGroup)
}

// flawOfClient returns the reason, with its class, if a request allows more than authentication as its common name in
// one group.
func flawOfClient(spec *certificatesv1.CertificateSigningRequestSpec, content content, group string) (class, why string) {
	switch {
	case content.flaw != "":
		return classForm, content.flaw
	case content.flawOfSubject(group) != "":
		return classSubject, content.flawOfSubject(group)
	case len(content.DNSNames)+len(content.IPAddresses)+len(content.EmailAddresses)+len(content.URIs) > 0:
		return classNames, "the request contains DNS names, IP addresses, email addresses or URIs, which a client certificate must not have"
	case !isClientUsage(spec.Usages):
		return classUsages, fmt.Sprintf("the usages are %s; they must be %q, and may be %q and %q", usagesText(spec.Usages),
			certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment)
	}
	return "", ""
}

// isClientUsage is the rule of kube-controller-manager, which does not sign other usages.
func isClientUsage(usages []certificatesv1.KeyUsage) bool {
	return only(usages, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth) &&
		slices.Contains(usages, certificatesv1.UsageClientAuth)
}

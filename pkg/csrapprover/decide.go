package csrapprover

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// verdict is the decision on a request.
type verdict int

const (
	// noOpinion: another approver may decide.
	noOpinion verdict = iota
	approve
	deny
	// ask: a fact is needed first.
	ask
)

// Kinds of requests, for metrics.
const (
	ofKubelet   = "kubelet-serving"
	ofNodeAgent = "node-agent"
	ofGardenadm = "gardenadm"
	// ofUnknown is a request for a client certificate that cannot be parsed.
	ofUnknown = "unknown"
)

// Classes of reasons, for metrics.
const (
	classPassed        = "passed"
	classForm          = "form"
	classUser          = "user"
	classCommonName    = "common-name"
	classSubject       = "subject"
	classNames         = "alternative-names"
	classUsages        = "usages"
	classNode          = "node"
	classMachine       = "machine"
	classNodeAddresses = "node-addresses"
)

// allPassed is the reason for every approval.
const allPassed = "all checks passed"

// decision is a verdict with its explanation.
type decision struct {
	verdict verdict
	// of is the kind of the request, class the class of the reason.
	of, class string
	// why is the human-readable reason.
	why string
	// question is the open question if the verdict is ask.
	question question
}

func denied(of, class, why string) decision {
	return decision{verdict: deny, of: of, class: class, why: why}
}

func approved(of string) decision {
	return decision{verdict: approve, of: of, class: classPassed, why: allPassed}
}

// question names a missing fact.
type question struct {
	topic topic
	name  string
}

type topic int

const (
	// aboutNode requests a Node by name.
	aboutNode topic = iota
	// aboutMachine requests a Machine by name.
	aboutMachine
	// aboutMachinesOf requests the Machines with the label of a Node.
	aboutMachinesOf
)

func asking(of string, topic topic, name string) decision {
	return decision{verdict: ask, of: of, question: question{topic, name}}
}

// node has the known facts about a Node.
type node struct {
	found     bool
	addresses []corev1.NodeAddress
}

// machine has the known facts about a Machine.
type machine struct {
	found bool
	// node is the name of its Node; empty until it has one.
	node string
}

// facts holds the answers to questions. A missing entry means that the fact has not been read.
type facts struct {
	// withMachines is set if requests are checked against Machines.
	withMachines bool
	nodes        map[string]node
	machines     map[string]machine
	// machinesOf has the names of the Machines of a Node, by the name of the Node.
	machinesOf map[string][]string
}

func newFacts(withMachines bool) *facts {
	return &facts{
		withMachines: withMachines,
		nodes:        map[string]node{}, machines: map[string]machine{}, machinesOf: map[string][]string{},
	}
}

// decide decides a request, or requests a missing fact. The caller then calls it again with the answer. The time plays
// no role: the signer is responsible for validity and expiry.
func decide(spec *certificatesv1.CertificateSigningRequestSpec, content content, facts *facts) decision {
	switch spec.SignerName {
	case certificatesv1.KubeletServingSignerName:
		return decideServing(spec, content, facts)
	case certificatesv1.KubeAPIServerClientSignerName:
		return decideClient(spec, content, facts)
	}
	return decision{}
}

// Undecided reports whether a request is for a handled signer, and neither approved nor denied.
func Undecided(csr *certificatesv1.CertificateSigningRequest) bool {
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName && csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName ||
		len(csr.Status.Certificate) > 0 || csr.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificatesv1.CertificateApproved || condition.Type == certificatesv1.CertificateDenied {
			return false
		}
	}
	return true
}

package etcd

import (
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"
)

// invalid says why an Etcd cannot be what its spec wants; empty if it can.
func (in Inputs) invalid() string {
	var problems []string
	say := func(format string, arguments ...any) { problems = append(problems, fmt.Sprintf(format, arguments...)) }
	spec := in.Etcd.Spec
	if spec.Replicas > 0 && spec.Replicas%2 == 0 {
		say("spec.replicas is %d: set an odd number, such as 1 or 3, or 0", spec.Replicas)
	}
	served := in.served()
	if spec.Replicas > 0 && int(spec.Replicas) < len(served) {
		say("spec.replicas is %d, and the cluster has %d members: a cluster cannot be made smaller", spec.Replicas, len(served))
	}
	if len(spec.ExternallyManagedMemberAddresses) > 0 {
		say("spec.externallyManagedMemberAddresses is not supported: remove it")
	}
	if tls := spec.ETCD.ClientURLTLS; tls != nil && tls.ClientTLSSecretRef.Name == "" {
		say("spec.etcd.clientUrlTls.clientTLSSecretRef is missing: members need a client certificate")
	}
	if len(served) > 1 {
		for _, member := range served {
			if member.TLS != in.peerTLS() {
				say("spec.etcd.peerUrlTls cannot be added or removed while the cluster has %d members: set it as it was", len(served))
				break
			}
		}
	}
	if text := spec.ETCD.DefragmentationSchedule; text != nil && *text != "" {
		if _, err := cron.ParseStandard(*text); err != nil {
			say("spec.etcd.defragmentationSchedule is not a cron expression with five fields: %v", err)
		}
	}
	return strings.Join(problems, "; ")
}

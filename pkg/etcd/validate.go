package etcd

import (
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"
)

// invalid describes why the spec of an Etcd cannot be applied, empty if it can.
func (in Inputs) invalid() string {
	var problems []string
	add := func(format string, arguments ...any) { problems = append(problems, fmt.Sprintf(format, arguments...)) }
	spec := in.Etcd.Spec
	if spec.Replicas > 0 && spec.Replicas%2 == 0 {
		add("spec.replicas is %d: set an odd number, such as 1 or 3, or 0", spec.Replicas)
	}
	served := in.served()
	if spec.Replicas > 0 && int(spec.Replicas) < len(served) {
		add("spec.replicas is %d, but the cluster has %d members: a cluster cannot be scaled down", spec.Replicas, len(served))
	}
	if len(spec.ExternallyManagedMemberAddresses) > 0 {
		add("spec.externallyManagedMemberAddresses is not supported: remove it")
	}
	if tls := spec.ETCD.ClientURLTLS; tls != nil && tls.ClientTLSSecretRef.Name == "" {
		add("spec.etcd.clientUrlTls.clientTLSSecretRef is missing: members need a client certificate")
	}
	if len(served) > 1 {
		for _, member := range served {
			if member.TLS != in.peerTLS() {
				add("spec.etcd.peerUrlTls cannot be added or removed while the cluster has %d members: restore its previous value", len(served))
				break
			}
		}
	}
	if text := spec.ETCD.DefragmentationSchedule; text != nil && *text != "" {
		if _, err := cron.ParseStandard(*text); err != nil {
			add("spec.etcd.defragmentationSchedule is not a cron expression with five fields: %v", err)
		}
	}
	problems = append(problems, in.invalidBackup()...)
	return strings.Join(problems, "; ")
}

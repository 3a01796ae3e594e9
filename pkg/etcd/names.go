// Package etcd is the flow of Etcds: a function from an Etcd and the Leases of its members to the ManagedResource with its StatefulSet and what
// belongs to it, and to its status. Names, labels, ports and status are those of etcd-druid. See docs/etcd.md.
package etcd

import (
	"fmt"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// FlowName is the value of flow.LabelFlow on all that the flow emits.
const FlowName = "etcd"

// Keys on an Etcd.
const (
	// Finalizer keeps an Etcd until all that belongs to it is gone.
	Finalizer = "druid.gardener.cloud/etcd-druid"
	// AnnotationOperation and AnnotationDruidOperation with the value OperationReconcile ask for the spec to be carried out.
	AnnotationOperation      = "gardener.cloud/operation"
	AnnotationDruidOperation = "druid.gardener.cloud/operation"
	OperationReconcile       = "reconcile"
	// AnnotationSuspend has the spec not carried out as long as it is there.
	AnnotationSuspend = "druid.gardener.cloud/suspend-etcd-spec-reconcile"
	// AnnotationAllowEviction has Pods that are not ready evicted in spite of the PodDisruptionBudget.
	AnnotationAllowEviction = "resources.druid.gardener.cloud/allow-unhealthy-pod-eviction"
	// AnnotationAcceptDataLoss is the identifier of a cluster whose data are lost. An empty cluster is formed instead, once.
	AnnotationAcceptDataLoss = "druid.gardener.cloud/accept-data-loss"
)

const (
	// annotationTemplate on the StatefulSet is a digest of the template of its Pods.
	annotationTemplate = "druid.gardener.cloud/pod-template-digest"
	// annotationChecksum on the Pods is that of the ConfigMap, so that they are replaced when it changes.
	annotationChecksum = "checksum/etcd-configmap"
)

// Components, as values of lease.LabelComponent.
const (
	componentStatefulSet    = "etcd-statefulset"
	componentClientService  = "etcd-client-service"
	componentPeerService    = "etcd-peer-service"
	componentConfigMap      = "etcd-config"
	componentBudget         = "etcd-pdb"
	componentServiceAccount = "druid-service-account"
	componentRole           = "etcd-druid-role"
	componentRoleBinding    = "druid-role-binding"
)

// Default ports.
const (
	clientPort  = 2379
	peerPort    = 2380
	backupPort  = 8080
	wrapperPort = 9095
)

// MemberName returns the name of a member, of its Pod and of its Lease.
func MemberName(etcd string, ordinal int32) string { return fmt.Sprintf("%s-%d", etcd, ordinal) }

// ClientServiceName returns the name of the Service for clients.
func ClientServiceName(etcd string) string { return etcd + "-client" }

// PeerServiceName returns the name of the Service by which members find each other.
func PeerServiceName(etcd string) string { return etcd + "-peer" }

func configMapName(etcd string) string { return etcd + "-config" }

func roleName(etcd string) string { return "druid.gardener.cloud:etcd:" + etcd }

// labelsOf returns the labels of an object of an Etcd. A colon, as in the names of roles, cannot be in a label.
func labelsOf(etcd, component, name string) map[string]string {
	return map[string]string{
		lease.LabelManagedBy: lease.ManagedBy, lease.LabelPartOf: etcd, lease.LabelComponent: component, lease.LabelName: strings.ReplaceAll(name, ":", "-"),
	}
}

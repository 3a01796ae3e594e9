// Package etcd contains the flow of Etcds: a function from an Etcd and the Leases of its members to its status and the
// ManagedResource with its StatefulSet and related objects. Names, labels, ports and the status are compatible with
// etcd-druid. See docs/etcd.md.
package etcd

import (
	"fmt"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// FlowName is the value of flow.LabelFlow on all emitted objects.
const FlowName = "etcd"

// Keys on an Etcd.
const (
	// Finalizer keeps an Etcd until all objects that belong to it are deleted.
	Finalizer = "druid.gardener.cloud/etcd-druid"
	// AnnotationOperation and AnnotationDruidOperation with the value OperationReconcile request that the spec is applied.
	AnnotationOperation      = "gardener.cloud/operation"
	AnnotationDruidOperation = "druid.gardener.cloud/operation"
	OperationReconcile       = "reconcile"
	// AnnotationSuspend suspends the reconciliation of the spec.
	AnnotationSuspend = "druid.gardener.cloud/suspend-etcd-spec-reconcile"
	// AnnotationAllowEviction allows the eviction of Pods that are not ready, regardless of the PodDisruptionBudget.
	AnnotationAllowEviction = "resources.druid.gardener.cloud/allow-unhealthy-pod-eviction"
	// AnnotationAcceptDataLoss is the ID of a cluster whose data loss the user accepts. It is replaced once by a new empty
	// cluster.
	AnnotationAcceptDataLoss = "druid.gardener.cloud/accept-data-loss"
	// AnnotationRestore is the ID of a cluster, or "latest": a cluster that was never formed begins with these backups.
	AnnotationRestore = "druid.gardener.cloud/restore-from-backup"
	// AnnotationAcceptEmpty is the ID of the cluster whose backups are in the store, and which an empty cluster replaces.
	AnnotationAcceptEmpty = "druid.gardener.cloud/accept-empty-cluster"
	// AnnotationSnapshot requests a full snapshot, once for each value. A value that begins with "final/" requests the last one of the
	// cluster, for which copies of the backups can wait. The condition SnapshotTaken reports the last value.
	AnnotationSnapshot = "druid.gardener.cloud/take-snapshot"
)

const (
	// annotationTemplate on the StatefulSet is a digest of its Pod template.
	annotationTemplate = "druid.gardener.cloud/pod-template-digest"
	// annotationChecksum on the Pods is a checksum of the ConfigMap, so that a change of the ConfigMap replaces the Pods.
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
	componentCompaction     = "etcd-backup-compaction"
	componentCopy           = "etcd-copy-backups-task"
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

// labelsOf returns the labels of an object of an Etcd. Label values must not contain the colons of role names.
func labelsOf(etcd, component, name string) map[string]string {
	return map[string]string{
		lease.LabelManagedBy: lease.ManagedBy, lease.LabelPartOf: etcd, lease.LabelComponent: component,
		lease.LabelName: strings.ReplaceAll(name, ":", "-"),
	}
}

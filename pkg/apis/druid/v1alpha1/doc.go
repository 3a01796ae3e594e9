// Package v1alpha1 is the API group druid.gardener.cloud/v1alpha1: the kinds of the operator for etcd: Etcd and
// EtcdCopyBackupsTask.
//
// The CustomResourceDefinitions are generated from the types.
//
// +kubebuilder:object:generate=true
// +groupName=druid.gardener.cloud
package v1alpha1

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an object of a kind that extensions answer: all kinds of this group except Cluster.
// +kubebuilder:object:generate=false
type Object interface {
	metav1.Object
	runtime.Object
	// GetExtensionSpec returns what the specifications of all kinds have in common. It is that of the object, not a copy.
	GetExtensionSpec() *DefaultSpec
	// GetExtensionStatus returns what the statuses of all kinds have in common. It is that of the object, not a copy.
	GetExtensionStatus() *DefaultStatus
}

// GetExtensionSpec implements [Object].
func (o *BackupBucket) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *BackupBucket) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *BackupEntry) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *BackupEntry) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *Bastion) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *Bastion) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *ContainerRuntime) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *ContainerRuntime) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *ControlPlane) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *ControlPlane) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *DNSRecord) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *DNSRecord) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *Extension) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *Extension) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *Infrastructure) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *Infrastructure) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *Network) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *Network) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *OperatingSystemConfig) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *OperatingSystemConfig) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *SelfHostedShootExposure) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *SelfHostedShootExposure) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements [Object].
func (o *Worker) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements [Object].
func (o *Worker) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

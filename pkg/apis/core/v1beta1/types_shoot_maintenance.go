package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Maintenance defines when and how a cluster is kept up to date.
type Maintenance struct {
	// AutoUpdate defines which versions are raised automatically.
	// +optional
	AutoUpdate *MaintenanceAutoUpdate `json:"autoUpdate,omitempty"`
	// TimeWindow is the time of the day at which maintenance takes place. Default: a random hour.
	// +optional
	TimeWindow *MaintenanceTimeWindow `json:"timeWindow,omitempty"`
	// ConfineSpecUpdateRollout defines whether changes of the specification wait for the time window. A change of hibernation
	// does not wait.
	// +optional
	ConfineSpecUpdateRollout *bool `json:"confineSpecUpdateRollout,omitempty"`
	// AutoRotation defines which credentials are rotated automatically.
	// +optional
	AutoRotation *MaintenanceAutoRotation `json:"autoRotation,omitempty"`
}

// MaintenanceAutoUpdate defines which versions are raised automatically.
type MaintenanceAutoUpdate struct {
	// KubernetesVersion defines whether the patch version of Kubernetes is raised. Default: true.
	KubernetesVersion bool `json:"kubernetesVersion"`
	// MachineImageVersion defines whether the version of machine images is raised. Default: true.
	// +optional
	MachineImageVersion *bool `json:"machineImageVersion,omitempty"`
}

// MaintenanceTimeWindow is a time of the day of 30 minutes to 6 hours.
type MaintenanceTimeWindow struct {
	// Begin is the begin of the window, as HHMMSS±ZZZZ.
	Begin string `json:"begin"`
	// End is the end of the window, as HHMMSS±ZZZZ.
	End string `json:"end"`
}

// MaintenanceAutoRotation defines what is rotated automatically.
type MaintenanceAutoRotation struct {
	// Credentials defines which credentials are rotated automatically.
	// +optional
	Credentials *MaintenanceCredentialsAutoRotation `json:"credentials,omitempty"`
}

// MaintenanceCredentialsAutoRotation defines which credentials are rotated automatically.
type MaintenanceCredentialsAutoRotation struct {
	// Observability defines how often the observability passwords are rotated.
	// +optional
	Observability *MaintenanceRotationConfig `json:"observability,omitempty"`
	// SSHKeypair defines how often the SSH key pair is rotated.
	// +optional
	SSHKeypair *MaintenanceRotationConfig `json:"sshKeypair,omitempty"`
	// ETCDEncryptionKey defines how often the encryption key of etcd is rotated.
	// +optional
	ETCDEncryptionKey *MaintenanceRotationConfig `json:"etcdEncryptionKey,omitempty"`
}

// MaintenanceRotationConfig defines how often a credential is rotated.
type MaintenanceRotationConfig struct {
	// RotationPeriod is the time between two rotations, of 30m to 2160h. 0 switches the rotation off. Default: 168h.
	// +optional
	RotationPeriod *metav1.Duration `json:"rotationPeriod,omitempty"`
}

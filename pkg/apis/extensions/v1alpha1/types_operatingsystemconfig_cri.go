package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CRIConfig holds the settings of a container runtime.
type CRIConfig struct {
	// Name is the name of the runtime. It is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Name CRIName `json:"name"`
	// CgroupDriver is what manages the control groups.
	// +optional
	CgroupDriver *CgroupDriverName `json:"cgroupDriver,omitempty"`
	// Containerd holds the settings of containerd.
	// +optional
	Containerd *ContainerdConfig `json:"containerd,omitempty"`
}

// CRIName is the name of a container runtime.
// +enum
// +kubebuilder:validation:Enum=containerd
type CRIName string

// The values of CRIName.
const (
	// CRINameContainerD is containerd.
	CRINameContainerD CRIName = "containerd"
)

// CgroupDriverName is what manages control groups.
// +enum
// +kubebuilder:validation:Enum=cgroupfs;systemd
type CgroupDriverName string

// The values of CgroupDriverName.
const (
	// CgroupDriverCgroupfs is the runtime itself.
	CgroupDriverCgroupfs CgroupDriverName = "cgroupfs"
	// CgroupDriverSystemd is systemd.
	CgroupDriverSystemd CgroupDriverName = "systemd"
)

// ContainerdConfig holds the settings of containerd.
type ContainerdConfig struct {
	// Registries are the registries that images are pulled from.
	// +listType=map
	// +listMapKey=upstream
	// +patchMergeKey=upstream
	// +patchStrategy=merge
	// +optional
	Registries []RegistryConfig `json:"registries,omitempty" patchStrategy:"merge" patchMergeKey:"upstream"`
	// SandboxImage is the image of the container that holds a pod's namespaces.
	// +kubebuilder:validation:MinLength=1
	SandboxImage string `json:"sandboxImage"`
	// Plugins holds the settings of containerd's plugins.
	// +listType=atomic
	// +optional
	Plugins []PluginConfig `json:"plugins,omitempty"`
}

// RegistryConfig holds the settings for the images of one registry.
type RegistryConfig struct {
	// Upstream is the name of the registry in references to images.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(_default|[^/@\s]+)$`
	Upstream string `json:"upstream"`
	// Server is the URL of the registry.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^/?#]+`
	Server *string `json:"server,omitempty"`
	// Hosts are the hosts that are asked before the registry, in this order.
	// +listType=map
	// +listMapKey=url
	// +patchMergeKey=url
	// +patchStrategy=merge
	// +optional
	Hosts []RegistryHost `json:"hosts,omitempty" patchStrategy:"merge" patchMergeKey:"url"`
	// ReadinessProbe defines whether the hosts are used only when they answer.
	// +optional
	ReadinessProbe *bool `json:"readinessProbe,omitempty"`
}

// RegistryHost is a host that serves the images of a registry.
type RegistryHost struct {
	// URL is the URL of the host.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^https?://[^/?#]+`
	URL string `json:"url"`
	// Capabilities is what the host can do. In effect without a value: pull and resolve.
	// +listType=atomic
	// +optional
	Capabilities []RegistryCapability `json:"capabilities,omitempty"`
	// CACerts are the paths of the certificates that the host's certificate is checked with.
	// +listType=atomic
	// +optional
	CACerts []string `json:"caCerts,omitempty"`
	// OverridePath defines whether the URL has the whole path of the API.
	// +optional
	OverridePath *bool `json:"overridePath,omitempty"`
}

// RegistryCapability is what a host of a registry can do.
// +enum
// +kubebuilder:validation:Enum=pull;resolve;push
type RegistryCapability string

// The values of RegistryCapability.
const (
	// PullCapability serves images.
	PullCapability RegistryCapability = "pull"
	// ResolveCapability serves the digests of tags.
	ResolveCapability RegistryCapability = "resolve"
	// PushCapability takes images.
	PushCapability RegistryCapability = "push"
)

// PluginConfig holds the settings of one of containerd's plugins.
type PluginConfig struct {
	// Op defines whether the settings are added or removed. Default: add.
	// +optional
	// +kubebuilder:default=add
	Op *PluginPathOperation `json:"op,omitempty"`
	// Path are the path of the settings in the configuration.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	Path []string `json:"path"`
	// Values holds the settings.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// PluginPathOperation defines whether settings are added or removed.
// +enum
// +kubebuilder:validation:Enum=add;remove
type PluginPathOperation string

// The values of PluginPathOperation.
const (
	// AddPluginPathOperation adds them.
	AddPluginPathOperation PluginPathOperation = "add"
	// RemovePluginPathOperation removes them.
	RemovePluginPathOperation PluginPathOperation = "remove"
)

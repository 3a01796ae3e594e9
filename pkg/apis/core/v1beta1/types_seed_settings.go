package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// SeedSettings holds the settings of what runs in a Seed.
type SeedSettings struct {
	// ExcessCapacityReservation defines what is reserved for new control planes.
	// +optional
	ExcessCapacityReservation *SeedSettingExcessCapacityReservation `json:"excessCapacityReservation,omitempty"`
	// Scheduling defines whether the scheduler may choose the Seed.
	// +optional
	Scheduling *SeedSettingScheduling `json:"scheduling,omitempty"`
	// LoadBalancerServices holds the settings of Services of type LoadBalancer.
	// +optional
	LoadBalancerServices *SeedSettingLoadBalancerServices `json:"loadBalancerServices,omitempty"`
	// VerticalPodAutoscaler holds the settings of the Vertical Pod Autoscaler.
	// +optional
	VerticalPodAutoscaler *SeedSettingVerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty"`
	// DependencyWatchdog holds the settings of the watchdog for control planes.
	// +optional
	DependencyWatchdog *SeedSettingDependencyWatchdog `json:"dependencyWatchdog,omitempty"`
	// TopologyAwareRouting defines whether traffic is kept in its zone.
	// +optional
	TopologyAwareRouting *SeedSettingTopologyAwareRouting `json:"topologyAwareRouting,omitempty"`
	// ZoneSelection defines how the zones of control planes are chosen.
	// +optional
	ZoneSelection *SeedSettingZoneSelection `json:"zoneSelection,omitempty"`
	// PersistentVolumeClaimAutoscaler defines whether volumes grow automatically.
	// +optional
	PersistentVolumeClaimAutoscaler *SeedSettingPersistentVolumeClaimAutoscaler `json:"persistentVolumeClaimAutoscaler,omitempty"`
}

// SeedSettingExcessCapacityReservation defines what is reserved for new control planes.
type SeedSettingExcessCapacityReservation struct {
	// Enabled defines whether anything is reserved. In effect without a value: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Configs is what is reserved. Default: 2 CPUs and 6Gi of memory.
	// +listType=atomic
	// +optional
	Configs []SeedSettingExcessCapacityReservationConfig `json:"configs,omitempty"`
}

// SeedSettingExcessCapacityReservationConfig is one reservation.
type SeedSettingExcessCapacityReservationConfig struct {
	// Resources is what is reserved.
	Resources corev1.ResourceList `json:"resources"`
	// NodeSelector are the labels of the nodes on which it is reserved.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations are the taints of nodes that the reservation accepts.
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// SeedSettingScheduling defines whether the scheduler may choose a Seed.
type SeedSettingScheduling struct {
	// Visible defines whether it may. Default: true.
	Visible bool `json:"visible"`
}

// SeedSettingLoadBalancerServices holds the settings of Services of type LoadBalancer.
type SeedSettingLoadBalancerServices struct {
	// Annotations are the annotations of the Services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// ExternalTrafficPolicy is the policy for traffic from outside of the cluster. In effect without a value: Cluster.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// Zones holds the settings that differ in single zones.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Zones []SeedSettingLoadBalancerServicesZones `json:"zones,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// ProxyProtocol defines whether the PROXY protocol is accepted.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty"`
	// ZonalIngress defines whether each zone has a load balancer.
	// +optional
	ZonalIngress *SeedSettingLoadBalancerServicesZonalIngress `json:"zonalIngress,omitempty"`
	// Class is the load balancer class of the Services.
	// +optional
	Class *string `json:"class,omitempty"`
}

// SeedSettingLoadBalancerServicesZones holds the settings of Services of type LoadBalancer in one zone.
type SeedSettingLoadBalancerServicesZones struct {
	// Name is the name of the zone.
	Name string `json:"name"`
	// Annotations are the annotations of the Services in the zone.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// ExternalTrafficPolicy is the policy for traffic from outside of the cluster.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// ProxyProtocol defines whether the PROXY protocol is accepted.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty"`
}

// LoadBalancerServicesProxyProtocol defines whether load balancers may use the PROXY protocol.
type LoadBalancerServicesProxyProtocol struct {
	// Allowed defines whether they may.
	Allowed bool `json:"allowed"`
}

// SeedSettingLoadBalancerServicesZonalIngress defines whether each zone has a load balancer.
type SeedSettingLoadBalancerServicesZonalIngress struct {
	// Enabled defines whether each zone has one. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// SeedSettingVerticalPodAutoscaler holds the settings of the Vertical Pod Autoscaler of a Seed.
type SeedSettingVerticalPodAutoscaler struct {
	// Enabled defines whether it is installed. Default: true.
	Enabled bool `json:"enabled"`
	// FeatureGates are the feature gates that are switched on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// MaxAllowed are the most CPU and memory that is recommended.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty"`
}

// SeedSettingDependencyWatchdog holds the settings of the watchdog for control planes.
type SeedSettingDependencyWatchdog struct {
	// Weeder holds the settings of the part that restarts pods which wait for a recovered dependency.
	// +optional
	Weeder *SeedSettingDependencyWatchdogWeeder `json:"weeder,omitempty"`
	// Prober holds the settings of the part that scales controllers down while nodes cannot reach the API server.
	// +optional
	Prober *SeedSettingDependencyWatchdogProber `json:"prober,omitempty"`
}

// SeedSettingDependencyWatchdogWeeder holds the settings of the weeder.
type SeedSettingDependencyWatchdogWeeder struct {
	// Enabled defines whether it is installed. Default: true.
	Enabled bool `json:"enabled"`
}

// SeedSettingDependencyWatchdogProber holds the settings of the prober.
type SeedSettingDependencyWatchdogProber struct {
	// Enabled defines whether it is installed. Default: true.
	Enabled bool `json:"enabled"`
}

// SeedSettingTopologyAwareRouting defines whether traffic is kept in its zone.
type SeedSettingTopologyAwareRouting struct {
	// Enabled defines whether it is. Default: false.
	Enabled bool `json:"enabled"`
}

// SeedSettingZoneSelection defines how the zones of control planes are chosen.
type SeedSettingZoneSelection struct {
	// Mode defines whether a control plane must be in the zones of its nodes.
	Mode ZoneSelectionMode `json:"mode"`
}

// ZoneSelectionMode defines whether a control plane must be in the zones of its nodes.
// +enum
// +kubebuilder:validation:Enum=Prefer;Enforce
type ZoneSelectionMode string

// The values of ZoneSelectionMode.
const (
	// ZoneSelectionModePrefer prefers the zones of the nodes.
	ZoneSelectionModePrefer ZoneSelectionMode = "Prefer"
	// ZoneSelectionModeEnforce allows the zones of the nodes only.
	ZoneSelectionModeEnforce ZoneSelectionMode = "Enforce"
)

// SeedSettingPersistentVolumeClaimAutoscaler defines whether volumes grow automatically.
type SeedSettingPersistentVolumeClaimAutoscaler struct {
	// Enabled defines whether they do. Default: false.
	Enabled bool `json:"enabled"`
}

package v1beta1

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaultsShoot sets the defaults of a Shoot that do not depend on other objects. Versions, machine images and networks
// are completed at admission and by the scheduler.
func SetDefaultsShoot(shoot *Shoot) {
	SetDefaultsShootSpec(&shoot.Spec, shoot.Namespace, shoot.Name)
	syncDNSCredentials(&shoot.Spec)
}

// syncDNSCredentials fills the deprecated name of a DNS provider's Secret from the reference to it, and the reference from the
// name, as long as the version of Kubernetes allows the name.
func syncDNSCredentials(spec *ShootSpec) {
	parsed, err := version.ParseGeneric(spec.Kubernetes.Version)
	if spec.DNS == nil || err != nil || parsed.AtLeast(version.MustParseGeneric("1.35")) {
		return
	}
	for i := range spec.DNS.Providers {
		provider := &spec.DNS.Providers[i]
		name, ref := provider.SecretName, provider.CredentialsRef
		switch {
		case ref == nil && name != nil && *name != "":
			provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: *name}
		case ref != nil && name == nil && ref.APIVersion == "v1" && ref.Kind == "Secret":
			secretName := ref.Name // not shared with the reference
			provider.SecretName = &secretName
		}
	}
}

// SetDefaultsShootSpec sets the defaults of a Shoot's specification. If the Shoot has no maintenance window, its start
// depends on the namespace and the name, so that the windows of many Shoots are spread over the day. Without them, there is
// no window yet.
func SetDefaultsShootSpec(spec *ShootSpec, namespace, name string) {
	defaulting.Pointer(&spec.Purpose, ShootPurposeEvaluation)
	defaulting.Pointer(&spec.SchedulerName, constants.DefaultSchedulerName)
	if namespace == constants.GardenNamespace {
		spec.Tolerations = withToleration(spec.Tolerations, constants.TaintSeedProtected)
	}
	if spec.CloudProfile != nil {
		defaulting.Value(&spec.CloudProfile.Kind, CloudProfileReferenceKindCloudProfile)
	}
	workerless := len(spec.Provider.Workers) == 0
	setDefaultsAddons(spec.Addons)
	setDefaultsKubernetes(&spec.Kubernetes, workerless)
	setDefaultsNetworking(spec)
	setDefaultsMaintenance(defaulting.Object(&spec.Maintenance), workerless, namespace, name)
	if workerless {
		return
	}
	setDefaultsNodeCIDRMaskSize(spec)
	setDefaultsSystemComponents(defaulting.Object(&spec.SystemComponents))
	defaulting.Pointer(&defaulting.Object(&spec.Provider.WorkersSettings).SSHAccess, SSHAccess{Enabled: true})
	for i := range spec.Provider.Workers {
		setDefaultsWorker(&spec.Provider.Workers[i], spec.Provider.Type)
	}
}

func withToleration(tolerations []Toleration, key string) []Toleration {
	if slices.ContainsFunc(tolerations, func(toleration Toleration) bool { return toleration.Key == key }) {
		return tolerations
	}
	return append(tolerations, Toleration{Key: key})
}

func setDefaultsAddons(addons *Addons) {
	if addons == nil {
		return
	}
	if dashboard := addons.KubernetesDashboard; dashboard != nil && dashboard.Enabled {
		defaulting.Pointer(&dashboard.AuthenticationMode, KubernetesDashboardAuthModeToken)
	}
	if addons.NginxIngress != nil {
		defaulting.Pointer(&addons.NginxIngress.ExternalTrafficPolicy, "Cluster")
	}
}

func setDefaultsNetworking(spec *ShootSpec) {
	networking := defaulting.Object(&spec.Networking)
	if len(networking.IPFamilies) == 0 {
		networking.IPFamilies = []IPFamily{IPFamilyIPv4}
	}
}

func setDefaultsSystemComponents(components *SystemComponents) {
	autoscaling := defaulting.Object(&defaulting.Object(&components.CoreDNS).Autoscaling)
	if autoscaling.Mode != CoreDNSAutoscalingModeClusterProportional {
		autoscaling.Mode = CoreDNSAutoscalingModeHorizontal
	}
}

func setDefaultsMaintenance(maintenance *Maintenance, workerless bool, namespace, name string) {
	if maintenance.AutoUpdate == nil {
		maintenance.AutoUpdate = &MaintenanceAutoUpdate{KubernetesVersion: true}
	}
	if !workerless {
		defaulting.Pointer(&maintenance.AutoUpdate.MachineImageVersion, true)
	}
	if maintenance.TimeWindow == nil && namespace != "" && name != "" { // both may not be known yet
		maintenance.TimeWindow = maintenanceWindowOf(namespace, name)
	}
	if maintenance.AutoRotation == nil || maintenance.AutoRotation.Credentials == nil {
		return
	}
	credentials := maintenance.AutoRotation.Credentials
	for _, rotation := range []*MaintenanceRotationConfig{credentials.Observability, credentials.SSHKeypair, credentials.ETCDEncryptionKey} {
		if rotation != nil {
			defaulting.Pointer(&rotation.RotationPeriod, metav1.Duration{Duration: 7 * 24 * time.Hour})
		}
	}
}

// maintenanceWindowOf returns a window of one hour that begins at an hour derived from the name.
func maintenanceWindowOf(namespace, name string) *MaintenanceTimeWindow {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace + "/" + name)) // never fails
	begin := hash.Sum32() % 24
	return &MaintenanceTimeWindow{Begin: fmt.Sprintf("%02d0000+0000", begin), End: fmt.Sprintf("%02d0000+0000", (begin+1)%24)}
}

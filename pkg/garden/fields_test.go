package garden

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// The owners of fields that the flow does not read.
const (
	networkPolicies = "the controller of network policies reads it"
	validation      = "other fields are checked against it"
)

// fieldRow is what a field of a Garden does.
type fieldRow struct {
	// path of the field, or of a field that contains it, below spec.
	path string
	// set declares it. bundle then contains text, which it does not contain otherwise.
	set          func(*operatorv1alpha1.GardenSpec)
	bundle, text string
	// inactive is what the Garden reports as not active. reader is who reads the field instead of the flow.
	inactive, reader string
}

func server(spec *operatorv1alpha1.GardenSpec) *operatorv1alpha1.KubeAPIServerConfig {
	return pointer(&spec.VirtualCluster.Kubernetes.KubeAPIServer)
}

func gardener(spec *operatorv1alpha1.GardenSpec) *operatorv1alpha1.GardenerAPIServerConfig {
	return pointer(&spec.VirtualCluster.Gardener.GardenerAPIServer)
}

func pointer[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

func least(memory string) *corev1beta1.ControlPlaneAutoscaling {
	return &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
}

// rows returns the table of all fields.
func rows() []fieldRow {
	return slices.Concat(rowsOfRuntime(), rowsOfVirtual(), rowsOfServer(), rowsOfGardener())
}

func rowsOfRuntime() []fieldRow {
	type spec = *operatorv1alpha1.GardenSpec
	settings := func(s spec) *operatorv1alpha1.Settings { return pointer(&s.RuntimeCluster.Settings) }
	return []fieldRow{
		{path: "dns", bundle: prefixRecord + "api-garden-example-org-local", text: `"name":"account"`, set: func(s spec) {
			s.DNS = &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{
				{Name: "one", Type: "local", SecretRef: corev1.LocalObjectReference{Name: "account"}},
			}}
			s.VirtualCluster.DNS.Domains[0].Provider = ptr.To("one")
		}},
		{path: "extensions", inactive: "spec.extensions", set: func(s spec) { s.Extensions = []operatorv1alpha1.GardenExtension{{Type: "one"}} }},
		{path: "resources", inactive: "spec.resources", set: func(s spec) { s.Resources = []corev1beta1.NamedResourceReference{{Name: "one"}} }},
		{path: "runtimeCluster.ingress", reader: "TestIngressController"},
		{path: "runtimeCluster.networking", reader: networkPolicies},
		{path: "runtimeCluster.provider.region", reader: validation},
		{path: "runtimeCluster.provider.zones", bundle: bundleNamespace, text: "zone-a,zone-b", set: func(s spec) { s.RuntimeCluster.Provider.Zones = []string{"zone-a", "zone-b"} }},
		{path: "runtimeCluster.settings.loadBalancerServices.annotations", bundle: bundleServerService, text: `"example.org/a":"b"`, set: func(s spec) {
			pointer(&settings(s).LoadBalancerServices).Annotations = map[string]string{"example.org/a": "b"}
		}},
		{path: "runtimeCluster.settings.loadBalancerServices.externalTrafficPolicy", bundle: bundleServerService, text: `"externalTrafficPolicy":"Local"`, set: func(s spec) {
			pointer(&settings(s).LoadBalancerServices).ExternalTrafficPolicy = ptr.To(corev1.ServiceExternalTrafficPolicyLocal)
		}},
		{path: "runtimeCluster.settings.loadBalancerServices.proxyProtocol", inactive: "proxyProtocol", set: func(s spec) {
			pointer(&settings(s).LoadBalancerServices).ProxyProtocol = &operatorv1alpha1.LoadBalancerServicesProxyProtocol{Allowed: true}
		}},
		{path: "runtimeCluster.settings.verticalPodAutoscaler.featureGates", bundle: bundleAutoscaler, text: "Fast=true", set: func(s spec) {
			pointer(&settings(s).VerticalPodAutoscaler).FeatureGates = map[string]bool{"Fast": true}
		}},
		{path: "runtimeCluster.settings.verticalPodAutoscaler.maxAllowed", bundle: bundleAutoscaler, text: "17Gi", set: func(s spec) {
			pointer(&settings(s).VerticalPodAutoscaler).MaxAllowed = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("17Gi")}
		}},
		{path: "runtimeCluster.settings.verticalPodAutoscaler.enabled", reader: "TestContents/autoscaler"},
		{path: "runtimeCluster.settings.topologyAwareRouting", bundle: bundleServerService, text: `"trafficDistribution":"PreferClose"`, set: func(s spec) {
			settings(s).TopologyAwareRouting = &operatorv1alpha1.SettingTopologyAwareRouting{Enabled: true}
		}},
		{path: "runtimeCluster.settings.persistentVolumeClaimAutoscaler", inactive: "persistentVolumeClaimAutoscaler", set: func(s spec) {
			settings(s).PersistentVolumeClaimAutoscaler = &operatorv1alpha1.SettingPersistentVolumeClaimAutoscaler{Enabled: true}
		}},
		{path: "runtimeCluster.volume", bundle: bundleEtcdEvents, text: `"storageCapacity":"77Gi"`, set: func(s spec) {
			s.RuntimeCluster.Volume = &operatorv1alpha1.Volume{MinimumSize: ptr.To(resource.MustParse("77Gi"))}
		}},
	}
}

func rowsOfVirtual() []fieldRow {
	type spec = *operatorv1alpha1.GardenSpec
	main := func(s spec) *operatorv1alpha1.ETCDMain { return pointer(&pointer(&s.VirtualCluster.ETCD).Main) }
	events := func(s spec) *operatorv1alpha1.ETCDEvents { return pointer(&pointer(&s.VirtualCluster.ETCD).Events) }
	storage := func(size string) *operatorv1alpha1.Storage {
		return &operatorv1alpha1.Storage{Capacity: ptr.To(resource.MustParse(size)), ClassName: ptr.To("fast")}
	}
	manager := func(s spec) *operatorv1alpha1.KubeControllerManagerConfig {
		return pointer(&s.VirtualCluster.Kubernetes.KubeControllerManager)
	}
	return []fieldRow{
		{path: "virtualCluster.controlPlane", bundle: bundleEtcdMain, text: `"replicas":3`, set: func(s spec) {
			s.VirtualCluster.ControlPlane = &operatorv1alpha1.ControlPlane{HighAvailability: &operatorv1alpha1.HighAvailability{}}
		}},
		{path: "virtualCluster.dns", bundle: bundleServer, text: "api.other.example.org", set: func(s spec) { s.VirtualCluster.DNS.Domains[0].Name = "other.example.org" }},
		{path: "virtualCluster.etcd.main.autoscaling", bundle: bundleEtcdMain, text: "901M", set: func(s spec) { main(s).Autoscaling = least("901M") }},
		{path: "virtualCluster.etcd.main.storage", bundle: bundleEtcdMain, text: `"storageClass":"fast"`, set: func(s spec) { main(s).Storage = storage("31Gi") }},
		{path: "virtualCluster.etcd.main.backup", bundle: bundleEtcdMain, text: `"provider":"local"`, set: func(s spec) {
			main(s).Backup = &operatorv1alpha1.Backup{Provider: "local", Region: ptr.To("local")}
		}},
		{path: "virtualCluster.etcd.events.autoscaling", bundle: bundleEtcdEvents, text: "902M", set: func(s spec) { events(s).Autoscaling = least("902M") }},
		{path: "virtualCluster.etcd.events.storage", bundle: bundleEtcdEvents, text: "32Gi", set: func(s spec) { events(s).Storage = storage("32Gi") }},
		{path: "virtualCluster.maintenance", bundle: bundleEtcdMain, text: " 3 * * *", set: func(s spec) {
			s.VirtualCluster.Maintenance.TimeWindow = operatorv1alpha1.MaintenanceTimeWindow{Begin: "030000+0000", End: "040000+0000"}
		}},
		{path: "virtualCluster.networking", bundle: bundleServer, text: "100.72.0.0/13", set: func(s spec) { s.VirtualCluster.Networking.Services = []string{"100.72.0.0/13"} }},
		{path: "virtualCluster.kubernetes.version", reader: "TestVersion"},
		{path: "virtualCluster.kubernetes.kubeControllerManager.certificateSigningDuration", bundle: bundleControllerManager, text: "cluster-signing-duration=49h", set: func(s spec) {
			manager(s).CertificateSigningDuration = &metav1.Duration{Duration: 49 * time.Hour}
		}},
		{path: "virtualCluster.kubernetes.kubeControllerManager", bundle: bundleControllerManager, text: "Slow=false", set: func(s spec) {
			manager(s).FeatureGates = map[string]bool{"Slow": false}
		}},
	}
}

func rowsOfServer() []fieldRow {
	type spec = *operatorv1alpha1.GardenSpec
	const at = "virtualCluster.kubernetes.kubeAPIServer"
	return []fieldRow{
		{path: at + ".auditWebhook", bundle: bundleServer, text: "--audit-webhook-batch-max-size=7", set: func(s spec) {
			server(s).AuditWebhook = &operatorv1alpha1.AuditWebhook{KubeconfigSecretName: "audit", BatchMaxSize: ptr.To[int32](7)}
		}},
		{path: at + ".authentication", bundle: bundleServer, text: "--authentication-token-webhook-cache-ttl=3m0s", set: func(s spec) {
			server(s).Authentication = &operatorv1alpha1.Authentication{Webhook: &operatorv1alpha1.AuthenticationWebhook{
				KubeconfigSecretName: "users", CacheTTL: &metav1.Duration{Duration: 3 * time.Minute}, Version: ptr.To("v1"),
			}}
		}},
		{path: at + ".resourcesToStoreInETCDEvents", bundle: bundleServer, text: "coordination.k8s.io/leases#https://virtual-garden-etcd-events-client:2379", set: func(s spec) {
			server(s).ResourcesToStoreInETCDEvents = []operatorv1alpha1.GroupResource{{Group: "coordination.k8s.io", Resource: "leases"}}
		}},
		{path: at + ".sni", bundle: bundleServer, text: "tls.key:*.example.net", set: func(s spec) {
			server(s).SNI = &operatorv1alpha1.SNI{SecretName: ptr.To("sni"), DomainPatterns: []string{"*.example.net"}}
		}},
		{path: at + ".encryptionConfig", bundle: bundleServer, text: "kube-apiserver-etcd-encryption-configuration", set: func(spec) {}},
		// The other fields are those of Shoots, which the component and its tests cover.
		{path: at, bundle: bundleServer, text: "--max-requests-inflight=123", set: func(s spec) {
			server(s).Requests = &corev1beta1.APIServerRequests{MaxNonMutatingInflight: ptr.To[int32](123)}
		}},
	}
}

// TestFields checks that each declared field has the effect of its row, or is reported as not active.
func TestFields(t *testing.T) {
	without := known(small())
	plan := planOf(t, without)
	for _, row := range rows() {
		if row.set == nil {
			continue
		}
		t.Run(row.path, func(t *testing.T) {
			with := small()
			row.set(&with.Spec)
			in := known(with)
			if row.inactive != "" {
				has := func(all []string) bool {
					return slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, row.inactive) })
				}
				if has(Inactive(without.Garden)) || !has(Inactive(in.Garden)) {
					t.Errorf("not active are %v", Inactive(in.Garden))
				}
				return
			}
			before, after := bundleOf(t, plan, row.bundle), bundleOf(t, planOf(t, in), row.bundle)
			if !strings.Contains(after, row.text) {
				t.Errorf("%s does not contain %q: %s", row.bundle, row.text, after)
			}
			if strings.Contains(before, row.text) && row.path != "virtualCluster.kubernetes.kubeAPIServer.encryptionConfig" {
				t.Errorf("%s contains %q without the field", row.bundle, row.text)
			}
		})
	}
}

// TestEachFieldHasARow checks that no field of a Garden lacks a row, and that each row is that of a field.
func TestEachFieldHasARow(t *testing.T) {
	paths, used := leaves("", reflect.TypeFor[operatorv1alpha1.GardenSpec]()), map[string]bool{}
	for _, path := range paths {
		best := ""
		for _, row := range rows() {
			if (path == row.path || strings.HasPrefix(path, row.path+".")) && len(row.path) > len(best) {
				best = row.path
			}
		}
		if best == "" {
			t.Errorf("the field %s has no row", path)
		}
		used[best] = true
	}
	for _, row := range rows() {
		if !used[row.path] {
			t.Errorf("the row %s is that of no field", row.path)
		}
	}
}

// leaves returns the JSON paths of the fields of a type that contain no fields of this project.
func leaves(path string, of reflect.Type) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || !strings.Contains(of.PkgPath(), "trellis") {
		return []string{path}
	}
	var all []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name == "" {
			all = append(all, leaves(path, of.Field(i).Type)...)
			continue
		}
		all = append(all, leaves(strings.TrimPrefix(path+"."+name, "."), of.Field(i).Type)...)
	}
	if len(all) == 0 {
		return []string{path}
	}
	return all
}

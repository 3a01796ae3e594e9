package garden

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/images"
)

// rowsOfGardener returns the fields of spec.virtualCluster.gardener.
func rowsOfGardener() []fieldRow {
	type spec = *operatorv1alpha1.GardenSpec
	const at = "virtualCluster.gardener."
	const api = at + "gardenerAPIServer."
	manager, scheduler := runtimeOf(gardenerprograms.ControllerManager), runtimeOf(gardenerprograms.Scheduler)
	admission := runtimeOf(gardenerprograms.AdmissionController)
	return []fieldRow{
		{path: at + "clusterIdentity", bundle: bundleAPI, text: "--cluster-identity=other", set: func(s spec) { s.VirtualCluster.Gardener.ClusterIdentity = "other" }},
		{path: api + "featureGates", inactive: "gardenerAPIServer.featureGates", set: func(s spec) { gardener(s).FeatureGates = map[string]bool{"One": true} }},
		{path: api + "admissionPlugins", bundle: bundleAPI, text: "--disable-admission-plugins=ShootQuotaValidator", set: func(s spec) {
			gardener(s).AdmissionPlugins = []corev1beta1.AdmissionPlugin{{Name: "ShootQuotaValidator", Disabled: ptr.To(true)}}
		}},
		{path: api + "auditConfig", bundle: bundleAPI, text: "--audit-policy-file=/etc/apiserver/audit-policy/audit-policy.yaml", set: func(s spec) {
			gardener(s).AuditConfig = &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}}
		}},
		{path: api + "auditWebhook", bundle: bundleAPI, text: "--audit-webhook-config-file=/etc/apiserver/audit-webhook/kubeconfig.yaml", set: func(s spec) {
			gardener(s).AuditWebhook = &operatorv1alpha1.AuditWebhook{KubeconfigSecretName: "audit"}
		}},
		{path: api + "logging", inactive: fieldGardener + "logging", set: func(s spec) { gardener(s).Logging = &corev1beta1.APIServerLogging{} }},
		{path: api + "requests", bundle: bundleAPI, text: "--max-mutating-requests-inflight=77", set: func(s spec) {
			gardener(s).Requests = &corev1beta1.APIServerRequests{MaxMutatingInflight: ptr.To[int32](77)}
		}},
		{path: api + "watchCacheSizes", bundle: bundleAPI, text: "--watch-cache-sizes=shoots.core.gardener.cloud#78", set: func(s spec) {
			gardener(s).WatchCacheSizes = &corev1beta1.WatchCacheSizes{Resources: []corev1beta1.ResourceWatchCacheSize{
				{APIGroup: ptr.To("core.gardener.cloud"), Resource: "shoots", CacheSize: 78},
			}}
		}},
		{path: api + "encryptionConfig", reader: "TestEncryption"},
		{path: api + "goAwayChance", bundle: bundleAPI, text: "--goaway-chance=0.015", set: func(s spec) { gardener(s).GoAwayChance = ptr.To(0.015) }},
		{path: api + "shootAdminKubeconfigMaxExpiration", bundle: bundleAPI, text: "--shoot-admin-kubeconfig-max-expiration=25h0m0s", set: func(s spec) {
			gardener(s).ShootAdminKubeconfigMaxExpiration = &metav1.Duration{Duration: 25 * time.Hour}
		}},
		{path: at + "gardenerAdmissionController.logLevel", bundle: admission, text: "logLevel: debug", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerAdmissionController).LogLevel = ptr.To("debug")
		}},
		{path: at + "gardenerAdmissionController.resourceAdmissionConfiguration", bundle: admission, text: "101Ki", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerAdmissionController).ResourceAdmissionConfiguration = &operatorv1alpha1.ResourceAdmissionConfiguration{
				Limits: []operatorv1alpha1.ResourceLimit{{Resources: []string{"shoots"}, Size: ptr.To(resource.MustParse("101Ki"))}},
			}
		}},
		{path: at + "gardenerControllerManager.featureGates", inactive: "gardenerControllerManager.featureGates", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerControllerManager).FeatureGates = map[string]bool{"One": true}
		}},
		{path: at + "gardenerControllerManager.logLevel", bundle: manager, text: "logLevel: debug", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerControllerManager).LogLevel = ptr.To("debug")
		}},
		{path: at + "gardenerControllerManager.defaultProjectQuotas", bundle: manager, text: "count/shoots", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerControllerManager).DefaultProjectQuotas = []operatorv1alpha1.ProjectQuotaConfiguration{{
				Config: corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/shoots": resource.MustParse("9")}}},
			}}
		}},
		{path: at + "gardenerScheduler.featureGates", inactive: "gardenerScheduler.featureGates", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerScheduler).FeatureGates = map[string]bool{"One": true}
		}},
		{path: at + "gardenerScheduler.logLevel", bundle: scheduler, text: "logLevel: debug", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerScheduler).LogLevel = ptr.To("debug")
		}},
		{path: at + "gardenerScheduler.strategy", bundle: scheduler, text: "candidateDeterminationStrategy: MinimalDistance", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerScheduler).Strategy = ptr.To(operatorv1alpha1.MinimalDistance)
		}},
		{path: at + "gardenerDashboard", inactive: "gardenerDashboard", set: func(s spec) {
			s.VirtualCluster.Gardener.GardenerDashboard = &operatorv1alpha1.GardenerDashboardConfig{}
		}},
		{path: at + "gardenerDiscoveryServer.domain", bundle: bundleAPI, text: "--workload-identity-token-issuer=https://keys.example.org/garden/", set: func(s spec) {
			s.VirtualCluster.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{Domain: &operatorv1alpha1.DNSDomain{Name: "keys.example.org"}}
		}},
		{path: at + "gardenerDiscoveryServer.tlsSecretName", bundle: bundleDiscovery, text: `"secretName":"certificate-of-users"`, set: func(s spec) {
			s.VirtualCluster.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{
				TLSSecretName: ptr.To("certificate-of-users"), Domain: &operatorv1alpha1.DNSDomain{Name: "keys.example.org"},
			}
		}},
		{path: at + "gardenerResourceManager", bundle: bundleVirtualManager, text: "monitoring", set: func(s spec) {
			pointer(&s.VirtualCluster.Gardener.GardenerResourceManager).AdditionalTargetNamespaces = []string{"monitoring"}
		}},
	}
}

// TestEncryption checks which kinds are encrypted: some always, others by configuration, with the declared provider.
func TestEncryption(t *testing.T) {
	in := known(small())
	if got := strings.Join(in.encryptedKinds(), ","); got != "secrets" {
		t.Errorf("by default, the API server encrypts %s", got)
	}
	garden := small()
	server(&garden.Spec).EncryptionConfig = &corev1beta1.EncryptionConfig{
		Resources: []string{"configmaps", "widgets.example.org"},
		Provider:  corev1beta1.EncryptionProvider{Type: ptr.To(corev1beta1.EncryptionProviderTypeSecretbox)},
	}
	gardener(&garden.Spec).EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud"}}
	in = known(garden)
	if got := strings.Join(in.encryptedKinds(), ","); got != "configmaps,secrets,widgets.example.org" {
		t.Errorf("the API server encrypts %s", got)
	}
	const always = "controllerdeployments.core.gardener.cloud,controllerregistrations.core.gardener.cloud,internalsecrets.core.gardener.cloud,"
	if got := strings.Join(in.encryptedGardenerKinds(), ","); got != always+"shoots.core.gardener.cloud,shootstates.core.gardener.cloud" {
		t.Errorf("the garden's API server encrypts %s", got)
	}
	status := in.encryptionAtRest()
	if strings.Join(status.Resources, ",") != "configmaps,shoots.core.gardener.cloud,widgets.example.org" || status.Provider.Type != corev1beta1.EncryptionProviderTypeSecretbox {
		t.Errorf("the status is %+v", status)
	}
	for _, config := range in.secretConfigs() {
		if config.Name == "kube-apiserver-etcd-encryption-key" && config.Provider != corev1beta1.EncryptionProviderTypeSecretbox {
			t.Errorf("the key is made for %s", config.Provider)
		}
	}
}

// TestVersion checks that the control plane has the version of the virtual garden, and other components that of the runtime cluster.
func TestVersion(t *testing.T) {
	in := known(small())
	for i := range in.Images {
		if in.Images[i].Name == "kube-apiserver" {
			in.Images[i] = images.Source{Name: "kube-apiserver", Repository: ptr.To("registry.example.org/kube-apiserver")}
		}
	}
	if got := bundleOf(t, planOf(t, in), bundleServer); !strings.Contains(got, "kube-apiserver:v1.36.1") {
		t.Errorf("the API server is %s", got)
	}
}

// TestRefused checks that nothing changes while a field asks for what cannot be done without a sign.
func TestRefused(t *testing.T) {
	garden := small()
	server(&garden.Spec).SNI = &operatorv1alpha1.SNI{DomainPatterns: []string{"*.example.net"}}
	in := known(garden)
	in.Emitted = emittedOf(t, known(small()))
	plan := planOf(t, in)
	if len(plan.Bundles) > 0 || len(plan.Waits) != 1 || !strings.Contains(plan.Waits[0].Reason, fieldServer+"sni") || len(plan.Waits[0].Holds) != len(in.Emitted) {
		t.Errorf("the plan has %d bundles, and waits for %v", len(plan.Bundles), plan.Waits)
	}
}

package kubeapiserver

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values(change ...func(*Values)) Values {
	v := Values{
		Namespace: "shoot--dev--one", Image: "kube-apiserver:v1.37.1", Replicas: 2, Scaling: Scaling{Min: 2, Max: 6}, ExternalHostname: "api.one.dev.internal.example.org",
		ServiceNetworks: []string{"100.64.0.0/13"}, HealthCheckToken: "token", VerticalPodAutoscaler: true,
		Encryption: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--one", Name: "kube-apiserver-etcd-encryption-configuration-12345678"}},
		Mounted: Mounted{
			CA: "ca-bundle-1", ClientCA: "ca-client-bundle-1", FrontProxyCA: "ca-front-proxy-bundle-1", EtcdCA: "ca-etcd-bundle-1", Server: "kube-apiserver-1",
			Aggregator: "kube-aggregator-1", EtcdClient: "etcd-client-1", ServiceAccountKey: "service-account-key-1", ServiceAccountKeys: "service-account-key-bundle-1",
			StaticTokens: "kube-apiserver-static-token-1",
		},
	}
	corev1beta1.SetDefaultsKubeAPIServerConfig(&v.Config)
	for _, each := range change {
		each(&v)
	}
	return v
}

// withEverything sets every setting of the API server.
func withEverything(v *Values) {
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	v.Config = corev1beta1.KubeAPIServerConfig{
		KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"B": false, "A": true}},
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{
			{Name: "PodSecurity", Config: raw(`{"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration","defaults":{"enforce":"baseline"}}`)},
			{Name: "AlwaysPullImages", Disabled: ptr.To(true)},
			{Name: "ImagePolicyWebhook", KubeconfigSecretName: ptr.To("policy")},
			{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: ptr.To("webhooks")},
		},
		APIAudiences: []string{"kubernetes", "vault"}, RuntimeConfig: map[string]bool{"apps/v1": true, "resource.k8s.io/v1beta1": true},
		ServiceAccountConfig: &corev1beta1.ServiceAccountConfig{
			Issuer: ptr.To("https://issuer.example.org"), AcceptedIssuers: []string{"https://old.example.org"}, ExtendTokenExpiration: ptr.To(false),
			MaxTokenExpiration: &metav1.Duration{Duration: 720 * time.Hour},
		},
		WatchCacheSizes: &corev1beta1.WatchCacheSizes{Default: ptr.To[int32](50), Resources: []corev1beta1.ResourceWatchCacheSize{
			{Resource: "secrets", CacheSize: 10}, {APIGroup: ptr.To("apps"), Resource: "deployments", CacheSize: 20},
		}},
		Requests:                      &corev1beta1.APIServerRequests{MaxNonMutatingInflight: ptr.To[int32](300), MaxMutatingInflight: ptr.To[int32](100)},
		EnableAnonymousAuthentication: ptr.To(true), EventTTL: &metav1.Duration{Duration: 2 * time.Hour},
		Logging:                             &corev1beta1.APIServerLogging{Verbosity: ptr.To[int32](4), HTTPAccessVerbosity: ptr.To[int32](3)},
		DefaultNotReadyTolerationSeconds:    ptr.To[int64](60),
		DefaultUnreachableTolerationSeconds: ptr.To[int64](70),
		Autoscaling:                         &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
		TLSMinVersion:                       ptr.To("VersionTLS13"),
	}
	v.Given = Given{
		AuditPolicy:           "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n",
		Authentication:        "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: https://login.example.org, audiences: [one]}\n",
		Authorization:         "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration\nauthorizers:\n- type: Webhook\n  name: Policy\n  webhook: {timeout: 3s, failurePolicy: NoOpinion}\n",
		AuthorizerKubeconfigs: map[string][]byte{"Policy": []byte("kubeconfig of Policy")},
		AdmissionKubeconfigs:  map[string][]byte{"ImagePolicyWebhook": []byte("kubeconfig of images"), "ValidatingAdmissionWebhook": []byte("kubeconfig of webhooks")},
	}
}

func TestObjects(t *testing.T) {
	for name, change := range map[string]func(*Values){
		"nodes": func(v *Values) {
			v.Mounted.KubeletCA, v.Mounted.KubeletClient = "ca-kubelet-bundle-1", "kube-apiserver-kubelet-1"
			v.Mounted.VPNCA, v.Mounted.VPNClient = "ca-vpn-bundle-1", "kube-apiserver-http-proxy-client-1"
		},
		"minimal": func(*Values) {}, "everything": withEverything, "hibernated": func(v *Values) { v.Replicas, v.VerticalPodAutoscaler = 0, false },
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(values(change))
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, objects)
		})
	}
}

// TestNodes compares the rights of the API server in a shoot with workers.
func TestNodes(t *testing.T) { golden.Check(t, "rights", NodeRights()) }

func TestServiceAndAutoscaler(t *testing.T) {
	for name, objectsOf := range map[string]func() ([]client.Object, error){
		"service": func() ([]client.Object, error) { return Service(ServiceValues{Namespace: "shoot--dev--one"}) },
		"service-gateways": func() ([]client.Object, error) {
			return Service(ServiceValues{Namespace: "shoot--dev--one", Gateways: []string{"istio-ingress--a", "istio-ingress"}})
		},
		"service-balancer": func() ([]client.Object, error) {
			return Service(ServiceValues{Namespace: "shoot--dev--one", Balancer: &exposure.Balancer{
				Annotations: map[string]string{"example.org/network": "public"}, Class: ptr.To("example.org/local"), TrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			}})
		},
		"autoscaler": func() ([]client.Object, error) { return Autoscaler("shoot--dev--one", Scaling{Min: 2, Max: 6}) },
		"never-down": func() ([]client.Object, error) {
			return Autoscaler("shoot--dev--one", Scaling{Min: 4, Max: 6, NeverDown: true})
		},
	} {
		objects, err := objectsOf()
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, objects)
	}
}

// TestRefused checks that values from users with which the API server would not start are refused with the name of their field.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*Values){
		"spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef": func(v *Values) { v.Given.AuditPolicy = "kind: Deployment\n" },
		"spec.kubernetes.kubeAPIServer.structuredAuthentication":             func(v *Values) { v.Given.Authentication = "[" },
		"authorizers[0] is not of type Webhook": func(v *Values) {
			v.Given.Authorization = "kind: AuthorizationConfiguration\nauthorizers: [{type: Node, name: n}]\n"
		},
		`has no entry for "Policy"`:                                func(v *Values) { v.Given.AuthorizerKubeconfigs = nil },
		"spec.kubernetes.kubeAPIServer.admissionPlugins[1].config": func(v *Values) { v.Config.AdmissionPlugins[0].Config.Raw = []byte("[") },
		"kubeConfigFile must not be set": func(v *Values) {
			v.Given.AdmissionKubeconfigs = nil
			v.Config.AdmissionPlugins = []corev1beta1.AdmissionPlugin{{Name: "MutatingAdmissionWebhook", Config: &runtime.RawExtension{Raw: []byte("kubeConfigFile: /etc/own")}}}
		},
	} {
		if _, err := Objects(values(withEverything, change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// TestIssuers checks that tokens that were issued before the Shoot had its own issuer remain valid.
func TestIssuers(t *testing.T) {
	config := corev1beta1.KubeAPIServerConfig{ServiceAccountConfig: &corev1beta1.ServiceAccountConfig{Issuer: ptr.To("https://a"), AcceptedIssuers: []string{"https://b"}}}
	issuer, accepted := Issuer(config, "own", "")
	if issuer != "https://a" || !slices.Equal(accepted, []string{"https://b", "https://own"}) {
		t.Errorf("got %s and %v", issuer, accepted)
	}
	if issuer, accepted := Issuer(config, "own", "https://managed"); issuer != "https://managed" || !slices.Equal(accepted, []string{"https://b", "https://a", "https://own"}) {
		t.Errorf("with a managed issuer: got %s and %v", issuer, accepted)
	}
	if issuer, accepted := Issuer(corev1beta1.KubeAPIServerConfig{}, "own", ""); issuer != "https://own" || len(accepted) > 0 {
		t.Errorf("got %s and %v", issuer, accepted)
	}
}

// TestCertificate checks that the certificate has the first address of the Service range, and the external names.
func TestCertificate(t *testing.T) {
	v := values()
	v.DNSNames = []string{"api.example.org"}
	config := Secrets(v)[0]
	if !slices.Contains(config.IPAddresses, "100.64.0.1") || !slices.Contains(config.DNSNames, "api.example.org") || !slices.Contains(config.DNSNames, "kube-apiserver.shoot--dev--one.svc") {
		t.Errorf("the certificate is for %v and %v", config.DNSNames, config.IPAddresses)
	}
}

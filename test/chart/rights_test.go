package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"

	"github.com/trellis-k8s/trellis/test/kit"
)

const manager = "gardener-resource-manager"

// token returns a token of a ServiceAccount.
func (h *helm) token(namespace, name string) string {
	h.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](7200)}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	kit.Must(h, h.client.SubResource("token").Create(h.Context(), account, request))
	return request.Status.Token
}

// kubeconfig returns a kubeconfig for the control plane.
func kubeconfig(tb testing.TB, user clientcmdapi.AuthInfo) []byte {
	tb.Helper()
	config := shared.Get(tb).Config()
	server := config.Host
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	written, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": &user},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	kit.Must(tb, err)
	return written
}

// start starts the resource-manager with the configuration of the chart, of which only paths, addresses and the rate of requests are
// adapted to this machine, and with the token of the chart's ServiceAccount.
func (h *helm) start(targetKubeconfig string) *kit.Process {
	h.Helper()
	config := h.configuration()
	section := func(keys ...string) map[string]any {
		at := config
		for _, key := range keys {
			next, is := at[key].(map[string]any)
			if !is {
				next = map[string]any{}
				at[key] = next
			}
			at = next
		}
		return at
	}
	connect := func(connection, kubeconfig string) {
		section(connection)["kubeconfig"], section(connection)["qps"] = kubeconfig, -1
	}
	connect("sourceClientConnection", "$KUBECONFIG")
	connect("targetClientConnection", targetKubeconfig)
	for server, port := range map[string]string{"healthProbes": "$HEALTH_PORT", "metrics": "$METRICS_PORT", "webhooks": "$WEBHOOK_PORT"} {
		section("server", server)["bindAddress"], section("server", server)["port"] = "127.0.0.1", port
	}
	text, err := yaml.Marshal(config)
	kit.Must(h, err)
	return kit.StartManagerWith(h, kubeconfig(h, clientcmdapi.AuthInfo{Token: h.token(h.namespace, manager)}), string(text))
}

// unusedInASeed are the rights that TestRightsOfASeed does not use.
var unusedInASeed = map[string]string{
	"get managedresources.resources.gardener.cloud":      "only after a lost answer, or a handover",
	"patch events.events.k8s.io":                         "only when an Event repeats itself",
	"patch events":                                       "only when an Event repeats itself",
	"approve signers.certificates.k8s.io":                "asked for by the API server itself when a request is approved",
	"update namespaces/finalizers":                       "asked for by the API server itself, with OwnerReferencesPermissionEnforcement",
	"list destinationrules.networking.istio.io":          "Istio is not installed",
	"watch destinationrules.networking.istio.io":         "Istio is not installed",
	"list envoyfilters.networking.istio.io":              "Istio is not installed",
	"watch envoyfilters.networking.istio.io":             "Istio is not installed",
	"create envoyfilters.networking.istio.io":            "Istio is not installed",
	"patch envoyfilters.networking.istio.io":             "Istio is not installed",
	"delete envoyfilters.networking.istio.io":            "Istio is not installed",
	"list gateways.networking.istio.io":                  "Istio is not installed",
	"watch gateways.networking.istio.io":                 "Istio is not installed",
	"list virtualservices.networking.istio.io":           "Istio is not installed",
	"watch virtualservices.networking.istio.io":          "Istio is not installed",
	"list prometheuses.monitoring.coreos.com":            "nothing is ten minutes old, so that the garbage collector needs no references",
	"list deployments.apps":                              "as above",
	"list statefulsets.apps":                             "as above",
	"list daemonsets.apps":                               "as above",
	"list jobs.batch":                                    "as above",
	"list cronjobs.batch":                                "as above",
	"delete configmaps":                                  "as above",
	"patch statefulsets.apps":                            "no second node comes",
	"get namespaces":                                     "no workload comes from a namespace that the webhook does not know yet",
	"get serviceaccounts":                                "no Pod comes from a ServiceAccount that the webhook does not know yet",
	"get certificatesigningrequests.certificates.k8s.io": "asked for by node agents",
	"list etcds.druid.gardener.cloud":                    "nobody deletes collections of them",
}

// objects are what the ManagedResources of a test hold.
const objects = `apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS}
data: {key: value}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: NS}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: web
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// seed enables everything but webhooks that API servers would call for all Pods: nobody reaches a Service here.
const seed = `mode: seed
rbac:
  target:
    admin: false
    rules:
    - {apiGroups: [""], resources: [configmaps, serviceaccounts, services]}
    - {apiGroups: [apps], resources: [deployments]}
config:
  controllers:
    clusterID: <default>
    csrApprover: {enabled: true}
    garbageCollector: {enabled: true}
    istioClusterConfiguration: {enabled: true}
    networkPolicy: {enabled: true, ingressControllerSelector: {namespace: ingress, podSelector: {matchLabels: {app: ingress}}}}
    nodeAgentReconciliationDelay: {enabled: true}
    nodeCriticalComponents: {enabled: true, namespaces: [kube-system]}
    tokenInvalidator: {enabled: true}
    tokenRequestor: {enabled: true, cleanUp: true}
  webhooks:
    crdDeletionProtection: {enabled: true}
    highAvailabilityConfig: {enabled: true}
    nodeAgentAuthorizer: {enabled: true}
    podKubeAPIServerLoadBalancing: {enabled: true}
    projectedTokenMount: {enabled: true}
    systemComponentsConfig: {enabled: true}
`

// TestRightsOfASeed installs the chart, runs the resource-manager with the rights of its ServiceAccount, and has it do what its parts are
// for: nothing is forbidden to it, and no right is there for nothing.
func TestRightsOfASeed(t *testing.T) {
	h := newHelm(t)
	kit.Must(t, h.install("resource-manager", seed, takeOver))
	t.Cleanup(func() { kit.Must(t, h.uninstall("resource-manager")) })
	h.eventuallyAvailable(manager)
	p := h.start("$KUBECONFIG")

	mr := h.manage("set", strings.ReplaceAll(objects, "NS", h.namespace))
	h.eventuallyIs("set", resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue)
	h.manage("waits", "apiVersion: v1\nkind: Service\nmetadata: {name: waits, namespace: "+h.namespace+"}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n")
	h.eventuallyIs("waits", resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse)
	h.drifts("one")
	h.requestsToken()
	h.opensNetwork()
	h.losesTaint("node-0")
	h.invalidatesToken()
	h.approves("node-1")
	h.trustsWebhooks()

	for _, gone := range []*resourcesv1alpha1.ManagedResource{mr, {ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "waits"}}} {
		kit.Must(t, h.client.Delete(t.Context(), gone))
		h.eventuallyGone(gone)
	}
	p.Stop()
	h.checkRights(unusedInASeed, "system:serviceaccount:"+h.namespace+":"+manager)
}

// drifts changes a ConfigMap of a ManagedResource, and waits until it is as it was.
func (h *helm) drifts(name string) {
	h.Helper()
	live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
	kit.Change(h, h.client, live, func() { live.Data["key"] = "changed" })
	kit.Eventually(h, "drift is put back", func() string {
		if err := h.get(live, "", name); err != nil {
			return err.Error()
		}
		return strings.TrimPrefix(live.Data["key"], "value")
	})
}

// requestsToken asks for a token, and withdraws that: what was made for it goes.
func (h *helm) requestsToken() {
	h.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name:   "asks",
		Labels: map[string]string{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot},
		Annotations: map[string]string{
			resourcesv1alpha1.AnnotationServiceAccountName: "client", resourcesv1alpha1.AnnotationServiceAccountNamespace: h.namespace,
			resourcesv1alpha1.AnnotationTokenTargetName: "client-token", resourcesv1alpha1.AnnotationTokenTargetNamespace: h.namespace,
		},
	}}
	h.create(secret)
	kit.Eventually(h, "the target Secret has a token", func() string {
		target := &corev1.Secret{}
		if err := h.get(target, "", "client-token"); err != nil {
			return err.Error()
		}
		if len(target.Data["token"]) == 0 {
			return "it has none"
		}
		return ""
	})
	// A label of the ServiceAccount changes, which has it applied again, and the token reviewed.
	kit.Change(h, h.client, secret, func() {
		secret.Annotations["serviceaccount.resources.gardener.cloud/labels"] = `{"a":"b"}`
	})
	kit.Eventually(h, "the ServiceAccount has the label", func() string {
		account := &corev1.ServiceAccount{}
		if err := h.get(account, "", "client"); err != nil {
			return err.Error()
		}
		return strings.TrimPrefix("b", account.Labels["a"])
	})
	kit.Must(h, h.client.Delete(h.Context(), secret))
	h.eventuallyGone(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "client-token"}})
	h.eventuallyGone(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "client"}})
}

// opensNetwork has policies made for a Service, changed, and deleted.
func (h *helm) opensNetwork() {
	h.Helper()
	const annotation = "networking.resources.gardener.cloud/from-world-to-ports"
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{annotation: `[{"port":8080}]`}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
	h.create(service)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "ingress-to-shop-from-world"}}
	kit.EventuallyTrue(h, "there is a policy", func() bool { return h.get(policy, "", policy.Name) == nil })
	kit.Must(h, h.client.Delete(h.Context(), service))
	h.eventuallyGone(policy)
}

// losesTaint taints a Node as if its critical components were not ready.
func (h *helm) losesTaint(name string) {
	h.Helper()
	const taint = "node.gardener.cloud/critical-components-not-ready"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	kit.Change(h, h.client, node, func() {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule})
	})
	kit.Eventually(h, "the taint goes", func() string {
		if err := h.client.Get(h.Context(), client.ObjectKey{Name: name}, node); err != nil {
			return err.Error()
		}
		for _, one := range node.Spec.Taints {
			if one.Key == taint {
				return "it is there"
			}
		}
		return ""
	})
}

// invalidatesToken creates a static token of a ServiceAccount that mounts none.
func (h *helm) invalidatesToken() {
	h.Helper()
	h.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "static"}, AutomountServiceAccountToken: ptr.To(false)})
	h.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "static", Annotations: map[string]string{corev1.ServiceAccountNameKey: "static"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	})
	kit.EventuallyTrue(h, "the token is labelled", func() bool {
		secret := &corev1.Secret{}
		return h.get(secret, "", "static") == nil && secret.Labels[resourcesv1alpha1.LabelPurpose] != ""
	})
}

// approves has a kubelet ask for a certificate that is denied, as it names an address that its Node does not have.
func (h *helm) approves(node string) {
	h.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(h, err)
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, DNSNames: []string{"elsewhere.example.org"},
	}, key)
	kit.Must(h, err)
	config := shared.Get(h).Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
	kubelet, err := client.New(config, client.Options{Scheme: h.client.Scheme()})
	kit.Must(h, err)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kubelet-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}),
			SignerName: certificatesv1.KubeletServingSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
	kit.Must(h, kubelet.Create(h.Context(), request))
	kit.EventuallyTrue(h, "the request is decided", func() bool {
		return h.client.Get(h.Context(), client.ObjectKeyFromObject(request), request) == nil && len(request.Status.Conditions) > 0
	})
}

// trustsWebhooks waits until the configuration of webhooks says what to trust.
func (h *helm) trustsWebhooks() {
	h.Helper()
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		kit.Eventually(h, kind+" has what to trust", func() string {
			configuration := &unstructured.Unstructured{}
			configuration.SetAPIVersion("admissionregistration.k8s.io/v1")
			configuration.SetKind(kind)
			if err := h.client.Get(h.Context(), client.ObjectKey{Name: manager}, configuration); err != nil {
				return err.Error()
			}
			hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
			kit.Must(h, err)
			for _, hook := range hooks {
				fields, is := hook.(map[string]any)
				if bundle, _, _ := unstructured.NestedString(fields, "clientConfig", "caBundle"); !is || bundle == "" {
					return "there is no bundle"
				}
			}
			return ""
		})
	}
}

// eventuallyAvailable waits until the Pods of the Deployment run, which a restricted namespace lets in.
func (h *helm) eventuallyAvailable(name string) {
	h.Helper()
	kit.Eventually(h, "the Pods run", func() string {
		deployment := &appsv1.Deployment{}
		if err := h.get(deployment, "", name); err != nil {
			return err.Error()
		}
		if deployment.Status.AvailableReplicas == *deployment.Spec.Replicas && deployment.Status.UpdatedReplicas == *deployment.Spec.Replicas {
			return ""
		}
		return deployment.Status.String()
	})
}

// unusedInAShoot are the rights that TestRightsOfAShoot does not use.
var unusedInAShoot = map[string]string{
	"get managedresources.resources.gardener.cloud": "only after a lost answer, or a handover",
	"patch events.events.k8s.io":                    "only when an Event repeats itself",
	"patch events":                                  "only when an Event repeats itself",
	"list events":                                   "nothing is unhealthy",
	"delete serviceaccounts":                        "no ServiceAccount is in a ManagedResource alone",
}

// TestRightsOfAShoot installs into a source cluster and into a target cluster, which are one here, with a user for each. The token for the
// target comes from a Secret, and is renewed by the resource-manager's own token requestor.
func TestRightsOfAShoot(t *testing.T) {
	h := newHelm(t)
	target := newHelm(t)
	values := `rbac: {target: {admin: false, rules: [{apiGroups: [""], resources: [configmaps, serviceaccounts]}, {apiGroups: [apps], resources: [deployments]}]}}
config: {controllers: {tokenRequestor: {enabled: true, serviceAccountNamespaces: [` + target.namespace + `]}}}
target: {tokenSecret: {create: true}, serviceAccount: {namespace: ` + target.namespace + `, name: of-the-shoot}}
`
	target.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "of-the-shoot"}})
	kit.Must(t, target.install("rights", "mode: shoot-target\n"+values))
	h.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "generic-token-kubeconfig"}, Data: map[string][]byte{
		"kubeconfig": kubeconfig(t, clientcmdapi.AuthInfo{TokenFile: "TOKENFILE"}),
	}})
	kit.Must(t, h.install("resource-manager", "mode: shoot\n"+values, takeOver))
	t.Cleanup(func() { kit.Must(t, h.uninstall("resource-manager")) })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "shoot-access-gardener-resource-manager"}}
	first := target.token(target.namespace, "of-the-shoot")
	kit.Change(t, h.client, secret, func() { secret.Data = map[string][]byte{"token": []byte(first)} })
	h.eventuallyAvailable(manager)

	mounted := t.TempDir()
	h.mount(mounted)
	p := h.start(filepath.Join(mounted, "kubeconfig"))
	kit.EventuallyTrue(t, "the token is renewed", func() bool {
		return h.get(secret, "", secret.Name) == nil && string(secret.Data["token"]) != first
	})
	h.mount(mounted)
	mr := h.manage("set", strings.ReplaceAll(objects, "NS", target.namespace))
	h.eventuallyIs("set", resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue)
	kit.Must(t, h.client.Delete(t.Context(), mr))
	h.eventuallyGone(mr)
	p.Stop()
	p = h.start(filepath.Join(mounted, "kubeconfig")) // which has the new token alone
	h.manage("again", strings.ReplaceAll(objects, "NS", target.namespace))
	h.eventuallyIs("again", resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue)
	p.Stop()
	h.checkRights(unusedInAShoot, "system:serviceaccount:"+h.namespace+":"+manager, "system:serviceaccount:"+target.namespace+":of-the-shoot")
}

// mount writes the Secrets of the Deployment's volume into a directory, as a kubelet would.
func (h *helm) mount(directory string) {
	h.Helper()
	deployment := &appsv1.Deployment{}
	kit.Must(h, h.get(deployment, "", manager))
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			secret := &corev1.Secret{}
			kit.Must(h, h.get(secret, "", source.Secret.Name))
			for _, item := range source.Secret.Items {
				content := strings.ReplaceAll(string(secret.Data[item.Key]), "TOKENFILE", filepath.Join(directory, "token"))
				kit.Must(h, os.WriteFile(filepath.Join(directory, item.Path), []byte(content), 0o600))
			}
		}
	}
}

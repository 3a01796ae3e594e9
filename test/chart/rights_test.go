package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
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

// start starts the resource-manager with the configuration of the chart and with the token of the chart's
// ServiceAccount. Only paths, addresses and the rate of requests are adapted to this machine.
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
	ports := map[string]any{"healthProbes": "$HEALTH_PORT", "metrics": "$METRICS_PORT", "webhooks": "$WEBHOOK_PORT"}
	if section("server")["ui"] != nil {
		h.pagePort = kit.FreePort(h)
		ports["ui"] = h.pagePort
	}
	for server, port := range ports {
		section("server", server)["bindAddress"], section("server", server)["port"] = "127.0.0.1", port
	}
	text, err := yaml.Marshal(config)
	kit.Must(h, err)
	return kit.StartManagerWith(h, kubeconfig(h, clientcmdapi.AuthInfo{Token: h.token(h.namespace, manager)}), string(text))
}

// unusedInASeed are the rights that TestRightsOfASeed does not use.
var unusedInASeed = map[string]string{
	"get managedresources.resources.gardener.cloud":      "only after a lost response, or a handover",
	"patch events.events.k8s.io":                         "only when an Event repeats itself",
	"get services":                                       "only if an object cannot be watched, or belonged to another owner",
	"get configmaps":                                     "as above",
	"get deployments.apps":                               "as above",
	"list pods":                                          "only while a Deployment is rolled out",
	"approve signers.certificates.k8s.io":                "checked by the API server itself when a request is approved",
	"update namespaces/finalizers":                       "checked by the API server itself, with OwnerReferencesPermissionEnforcement",
	"list *.networking.istio.io":                         "Istio is not installed",
	"watch *.networking.istio.io":                        "Istio is not installed",
	"create envoyfilters.networking.istio.io":            "Istio is not installed",
	"patch envoyfilters.networking.istio.io":             "Istio is not installed",
	"delete envoyfilters.networking.istio.io":            "Istio is not installed",
	"list prometheuses.monitoring.coreos.com":            "nothing is ten minutes old, so that the garbage collector needs no references",
	"list statefulsets.apps":                             "as above",
	"list jobs.batch":                                    "as above",
	"list cronjobs.batch":                                "as above",
	"patch statefulsets.apps":                            "no second node is created",
	"get namespaces":                                     "no workload is created in a namespace that the webhook has not seen yet",
	"get certificatesigningrequests.certificates.k8s.io": "only for requests of node agents",
	"list etcds.druid.gardener.cloud":                    "no client deletes collections of them",
	"list *.extensions.gardener.cloud":                   "no client deletes collections of them",
}

// objects are the manifests of a test's ManagedResources.
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

// seed enables everything except webhooks that API servers would call for all Pods, because Services are not
// reachable here.
const seed = `mode: seed
rbac:
  target:
    admin: false
    rules:
    - {apiGroups: [""], resources: [configmaps, serviceaccounts, services]}
    - {apiGroups: [apps], resources: [deployments]}
config:
  server: {ui: {}}
  controllers:
    clusterID: <default>
    csrApprover: {enabled: true}
    garbageCollector: {enabled: true}
    istioClusterConfiguration: {enabled: true}
    networkPolicy: {enabled: true, ingressControllerSelector: {namespace: ingress, podSelector: {matchLabels: {app: ingress}}}}
    nodeAgentReconciliationDelay: {enabled: true, firstNode: true}
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

// TestRightsOfASeed installs the chart, runs the resource-manager with the rights of its ServiceAccount, and
// exercises all its parts. No request may be forbidden, and all rights must be used.
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
	h.showsPage("set")
	h.drifts("one")
	h.requestsToken()
	h.opensNetwork()
	h.losesTaint("node-0")
	h.invalidatesToken()
	h.approves("node-1")
	h.trustsWebhooks()
	h.mendsCertificate()

	for _, gone := range []*resourcesv1alpha1.ManagedResource{mr, {ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "waits"}}} {
		kit.Must(t, h.client.Delete(t.Context(), gone))
		h.eventuallyGone(gone)
	}
	p.Stop()
	h.checkRights(unusedInASeed, "system:serviceaccount:"+h.namespace+":"+manager)
}

// unusedInAShoot are the rights that TestRightsOfAShoot does not use.
var unusedInAShoot = map[string]string{
	"get managedresources.resources.gardener.cloud": "only after a lost response, or a handover",
	"create events.events.k8s.io":                   "nothing fails",
	"patch events.events.k8s.io":                    "only when an Event repeats itself",
	"list events":                                   "only while something is unhealthy",
	"list pods":                                     "only while a Deployment is rolled out",
	"watch pods":                                    "only while a Deployment is rolled out",
	"get configmaps":                                "only if an object cannot be watched, or belonged to another owner",
	"get deployments.apps":                          "as above",
	"create secrets":                                "no token is written to a Secret of the target",
}

// TestRightsOfAShoot installs into a source cluster and a target cluster, which are the same cluster here, with a
// user for each. The token for the target is in a Secret, and the resource-manager's own token requestor renews
// it.
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
	p = h.start(filepath.Join(mounted, "kubeconfig")) // only the new token is mounted
	h.manage("again", strings.ReplaceAll(objects, "NS", target.namespace))
	h.eventuallyIs("again", resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue)
	p.Stop()
	h.checkRights(unusedInAShoot, "system:serviceaccount:"+h.namespace+":"+manager, "system:serviceaccount:"+target.namespace+":of-the-shoot")
}

// mount writes the Secrets of the Deployment's volume to a directory, as a kubelet would.
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

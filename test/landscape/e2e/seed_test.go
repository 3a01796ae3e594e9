package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/landscape"
)

const (
	seedName = "one"
	// tokenID and tokenSecret are the parts of the bootstrap token.
	tokenID, tokenSecret = "abcdef", "0123456789abcdef"
	// seedTimeout is how long the images of a seed may take to start, on a machine that does much else.
	seedTimeout = 5 * time.Minute
)

// seedImages are those of a garden and a seed.
var seedImages = []string{
	"etcd", "apiserver", "gardenlet", "resource-manager", "etcd-operator", "etcd-member", "vpa-admission-controller", "vpa-recommender", "vpa-updater",
}

// TestSeed makes the base cluster a garden and a seed with their charts: the API server of the garden, the gardenlet, which registers its Seed,
// and all that the Seed's flow emits, in real containers. Then the Seed is deleted.
func TestSeed(t *testing.T) {
	needsLandscape(t)
	c := on(t, base)
	must(t, resourcesv1alpha1.AddToScheme(c.Scheme()))
	must(t, served.AddToScheme(c.Scheme()))
	for _, name := range seedImages {
		_, err := base.Push(c.ctx, name)
		must(t, err)
	}
	for _, name := range []string{constants.GardenNamespace, "gardener-system-public", "seed-" + seedName} {
		c.createNamespace(name)
	}
	c.installGarden()
	c.installGardenlet()
	began := time.Now()
	c.within(seedTimeout, "the Seed is ready", c.seedIsReady)
	t.Logf("The Seed is ready %s after the gardenlet was installed:\n%s", time.Since(began).Round(time.Second), c.managedResources())

	in := &cluster{c.Client, t, c.ctx, c.landscape, constants.GardenNamespace}
	for _, name := range []string{"gardenlet", resourceManager, "etcd-druid", "vpa-admission-controller", "vpa-recommender", "vpa-updater"} {
		in.rolledOut(name)
	}
	c.deleteSeed()
}

func (c *cluster) createNamespace(name string) {
	c.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(c.t, client.IgnoreAlreadyExists(c.Create(c.ctx, namespace)))
	c.t.Cleanup(func() { must(c.t, client.IgnoreNotFound(c.Delete(context.Background(), namespace))) })
}

// installGarden starts an etcd and the API server of the garden, and gives gardenlets their rights.
func (c *cluster) installGarden() {
	c.t.Helper()
	container := corev1.Container{Name: "etcd", Image: c.image("etcd"), Args: []string{
		"--data-dir=/tmp/etcd", "--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://garden-etcd:2379",
	}}
	etcd := service("garden-etcd", corev1.ServiceTypeClusterIP)
	etcd.Spec.Ports = []corev1.ServicePort{{Port: 2379, TargetPort: intstr.FromInt32(2379)}}
	c.create(c.deployment("garden-etcd", 1, pod(container)), etcd)

	authority, err := landscape.NewAuthority("garden")
	must(c.t, err)
	server, err := authority.Issue("gardener-apiserver", nil, nil, "gardener-apiserver."+c.namespace+".svc")
	must(c.t, err)
	c.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "garden-tls"},
		Data:       map[string][]byte{corev1.TLSCertKey: server.Certificate, corev1.TLSPrivateKeyKey: server.Key},
	})
	repository, tag, _ := strings.Cut(c.image("apiserver"), ":")
	c.helm("apiserver", "charts/apiserver", c.namespace, fmt.Sprintf(`
replicas: 1
image: {repository: %q, tag: %q}
clusterIdentity: landscape
etcd: {servers: ["http://garden-etcd:2379"]}
tls: {secretName: garden-tls, caBundle: %q}`, repository, tag, authority.PEM()))
	c.rolledOut("gardener-apiserver")
	c.eventually("the API of the garden is served", func() error { return c.List(c.ctx, &corev1beta1.SeedList{}) })
	c.helm("gardenlet-garden", "charts/gardenlet", constants.GardenNamespace,
		fmt.Sprintf("{mode: garden, seeds: [{name: %s, bootstrapTokenID: %s}]}", seedName, tokenID))
	c.provideExtensions()
}

// provideExtensions states that the extensions that the Seed needs are installed. What the Seed emits uses none of them.
func (c *cluster) provideExtensions() {
	c.t.Helper()
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	for _, kind := range []string{"DNSRecord", "ControlPlane", "Infrastructure", "Worker"} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: "local"})
	}
	must(c.t, c.Create(c.ctx, registration))
}

// installExtensions creates the installation that the controllers of the garden would, as one that is ready.
func (c *cluster) installExtensions() error {
	installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	if err := c.Get(c.ctx, client.ObjectKeyFromObject(installation), installation); !apierrors.IsNotFound(err) {
		return err
	}
	installation.Spec.RegistrationRef.Name, installation.Spec.SeedRef = "local", &corev1.ObjectReference{Name: seedName}
	if err := c.Create(c.ctx, installation); err != nil {
		return err
	}
	for kind, status := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
		corev1beta1.ControllerInstallationValid: "True", corev1beta1.ControllerInstallationInstalled: "True",
		corev1beta1.ControllerInstallationHealthy: "True", corev1beta1.ControllerInstallationProgressing: "False",
	} {
		installation.Status.Conditions = append(installation.Status.Conditions, corev1beta1.Condition{
			Type: kind, Status: status, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(), Reason: "Test", Message: "ready",
		})
	}
	return c.Status().Update(c.ctx, installation)
}

// installGardenlet installs the resource-manager and the gardenlet, with a bootstrap token.
func (c *cluster) installGardenlet() {
	c.t.Helper()
	repository, tag, _ := strings.Cut(c.image("resource-manager"), ":")
	c.helm("resource-manager", "charts/resource-manager", constants.GardenNamespace,
		fmt.Sprintf("image: {repository: %q, tag: %q}\nconfig: {controllers: {resourceClass: seed}}", repository, tag))
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + tokenID}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": tokenID, "token-secret": tokenSecret, "usage-bootstrap-authentication": "true"},
	}
	must(c.t, c.Create(c.ctx, token))
	roots := &corev1.ConfigMap{}
	must(c.t, c.Get(c.ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"}, roots))
	overwrites, err := os.ReadFile(filepath.Join(base.Directory, "images.yaml"))
	must(c.t, err)
	repository, tag, _ = strings.Cut(c.image("gardenlet"), ":")
	indented := func(text string, by int) string {
		return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", by))
	}
	c.helm("gardenlet", "charts/gardenlet", constants.GardenNamespace, fmt.Sprintf(`
image: {repository: %q, tag: %q}
imageVectorOverwrite: |
  %s
config:
  apiVersion: gardenlet.config.gardener.cloud/v1alpha1
  kind: GardenletConfiguration
  gardenClientConnection:
    bootstrapKubeconfig:
      name: gardenlet-kubeconfig-bootstrap
      namespace: garden
      kubeconfig: |
        %s
    kubeconfigSecret: {name: gardenlet-kubeconfig, namespace: garden}
  seedConfig:
    metadata: {name: %s}
    spec:
      provider: {type: local, region: local}
      networks: {nodes: %s, pods: %s, services: %s}
      ingress: {domain: ingress.one.example.org, controller: {kind: nginx}}
      dns:
        provider: {type: local, credentialsRef: {apiVersion: v1, kind: Secret, name: dns, namespace: garden}}
        internal: {type: local, domain: internal.example.org, credentialsRef: {apiVersion: v1, kind: Secret, name: internal, namespace: garden}}
      settings: {excessCapacityReservation: {enabled: false}}
`, repository, tag, indented(string(overwrites), 2), indented(bootstrapKubeconfig(roots.Data["ca.crt"]), 8), seedName,
		base.Network.Machine().Masked(), base.Network.Pods(), base.Network.Services()))
}

func bootstrapKubeconfig(authority string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: garden
contexts: [{name: garden, context: {cluster: garden, user: bootstrap}}]
clusters: [{name: garden, cluster: {server: "https://kubernetes.default.svc", certificate-authority-data: %s}}]
users: [{name: bootstrap, user: {token: %s.%s}}]`, base64.StdEncoding.EncodeToString([]byte(authority)), tokenID, tokenSecret)
}

// seedIsReady approves the gardenlet's certificate and installs extensions on the way, which the controllers of the garden would do.
func (c *cluster) seedIsReady() error {
	if err := c.approveCertificates(); err != nil {
		return err
	}
	seed := &corev1beta1.Seed{}
	if err := c.Get(c.ctx, client.ObjectKey{Name: seedName}, seed); err != nil {
		return err
	}
	if err := c.installExtensions(); err != nil {
		return err
	}
	last := seed.Status.LastOperation
	if last == nil || last.State != corev1beta1.LastOperationStateSucceeded || seed.Status.ObservedGeneration != seed.Generation {
		return fmt.Errorf("last operation %+v\n%s", last, c.managedResources())
	}
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		if !conditionIsTrue(seed.Status.Conditions, kind) {
			return fmt.Errorf("%s is not True: %+v", kind, seed.Status.Conditions)
		}
	}
	return nil
}

func conditionIsTrue(conditions []corev1beta1.Condition, kind corev1beta1.ConditionType) bool {
	for _, condition := range conditions {
		if condition.Type == kind {
			return condition.Status == corev1beta1.ConditionTrue
		}
	}
	return false
}

func (c *cluster) approveCertificates() error {
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := c.List(c.ctx, requests); err != nil {
		return err
	}
	for i := range requests.Items {
		request := &requests.Items[i]
		if !strings.HasPrefix(request.Name, "seed-csr-") || len(request.Status.Conditions) > 0 {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", LastUpdateTime: metav1.Now(),
		}}
		if err := c.SubResource("approval").Update(c.ctx, request); err != nil {
			return err
		}
	}
	return nil
}

// managedResources is what a user sees of the Seed.
func (c *cluster) managedResources() string {
	output, err := c.tryKubectl("get", "managedresources", "--namespace", constants.GardenNamespace)
	if err != nil {
		return err.Error()
	}
	return output
}

// deleteSeed deletes the Seed: all that it emitted goes, but what it shares with others and the resource-manager.
func (c *cluster) deleteSeed() {
	c.t.Helper()
	must(c.t, c.Delete(c.ctx, &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "local"}}))
	must(c.t, c.Delete(c.ctx, &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "local"}}))
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}
	must(c.t, c.Patch(c.ctx, seed, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, constants.AnnotationConfirmationDeletion))))
	began := time.Now()
	must(c.t, c.Delete(c.ctx, seed))
	c.within(seedTimeout, "the Seed is gone", func() error {
		if err := c.Get(c.ctx, client.ObjectKeyFromObject(seed), seed); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: %+v\n%s", err, seed.Status.LastOperation, c.managedResources())
		}
		return nil
	})
	c.t.Logf("The Seed is gone after %s", time.Since(began).Round(time.Second))
	left := &resourcesv1alpha1.ManagedResourceList{}
	must(c.t, c.List(c.ctx, left, client.InNamespace(constants.GardenNamespace)))
	deployments := &appsv1.DeploymentList{}
	must(c.t, c.List(c.ctx, deployments, client.InNamespace(constants.GardenNamespace)))
	for _, d := range deployments.Items {
		if d.Name != "gardenlet" && d.Name != resourceManager {
			c.t.Errorf("Deployment %s is left", d.Name)
		}
	}
	for _, mr := range left.Items {
		c.t.Errorf("ManagedResource %s is left", mr.Name)
	}
}

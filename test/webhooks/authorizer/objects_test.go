package authorizer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	secretLabel = "worker.gardener.cloud/gardener-node-agent-secret-name"
	poolLabel   = "worker.gardener.cloud/pool"
	// allGroup may do everything by RBAC.
	allGroup = "everything"
)

const ownConfiguration = `apiVersion: extensions.gardener.cloud/v1alpha1
kind: OperatingSystemConfig
spec:
  files:
  - path: /a
    content: {secretRef: {name: file-of-all, dataKey: a}}
  - path: /b
    hostName: host-own
    content: {secretRef: {name: file-of-own-host, dataKey: a}}
  - path: /b
    hostName: host-foreign
    content: {secretRef: {name: file-of-foreign-host, dataKey: a}}
  - path: /c
    content: {inline: {data: top-secret}}
status:
  extensionFiles:
  - path: /d
    content: {secretRef: {name: file-of-extension, dataKey: a}}
`

const foreignConfiguration = `spec: {files: [{path: /a, content: {secretRef: {name: file-of-foreign-pool, dataKey: a}}}]}`

// populate creates two Machines with their Nodes and the objects that belong to them, its own and a foreign one. It also creates a
// Machine without a Node.
func (f *fixture) populate(t *testing.T) {
	t.Helper()
	kube := metav1.NamespaceSystem
	objects := []client.Object{
		newMachine("m-own", "n-own", "osc-own"), newMachine("m-foreign", "n-foreign", "osc-foreign"), newMachine("m-bare", "", ""),
		newMachine("m-new", "", "osc-own"), newMachine("m-empty", "n-empty", ""),
		newNode("n-own", "host-own", "osc-own"), newNode("n-foreign", "host-foreign", "osc-foreign"), newNode("n-empty", "host-empty", ""),
		// Forged by its node agent: the label does not name a Secret of a worker pool.
		newNode("n-forged", "host-forged", "kube-scheduler"), newMachine("m-forged", "n-forged", "osc-own"),
		newSecret("osc-own", map[string]string{poolLabel: "a"}, ownConfiguration),
		newSecret("osc-foreign", map[string]string{poolLabel: "b"}, foreignConfiguration),
		newSecret("osc-bad", map[string]string{poolLabel: "c"}, "spec: {files: [{content: top-secret}]}"),
		newNode("n-bad", "host-bad", "osc-bad"), newMachine("m-bad", "n-bad", "osc-bad"),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kube, Name: "gardener-node-agent-n-own"}},
		newPod("pod-own", "n-own"), newPod("pod-foreign", "n-foreign"), newPod("pod-unbound", ""),
		newRequest(t, "csr-foreign"),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "everything"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: allGroup}},
		},
	}
	for _, object := range objects {
		kit.Must(t, f.client.Create(t.Context(), object))
	}
	for user, name := range map[string]string{"m-own": "csr-m-own", "n-own": "csr-n-own"} {
		config := rest.CopyConfig(f.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: prefix + user, Groups: []string{group, allGroup}}
		agent, err := client.New(config, client.Options{})
		kit.Must(t, err)
		kit.Must(t, agent.Create(t.Context(), newRequest(t, name)))
	}
}

// installMachines defines the kind Machine and creates the namespace of Machines.
func (f *fixture) installMachines(ctx context.Context, t *testing.T) {
	t.Helper()
	kit.Define(t, f.config, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "machines.machine.sapcloud.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "machine.sapcloud.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "machines", Singular: "machine", Kind: "Machine", ListKind: "MachineList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	})
	kit.Must(t, f.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machineNamespace}}))
}

func newMachine(name, node, secret string) *unstructured.Unstructured {
	machine := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"name": name, "namespace": machineNamespace},
		"spec":     map[string]any{"providerID": "x"},
	}}
	if node != "" {
		machine.SetLabels(map[string]string{"node": node})
	}
	if secret != "" {
		machine.Object["spec"] = map[string]any{"nodeTemplate": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{secretLabel: secret}},
		}}
	}
	return machine
}

func newNode(name, host, secret string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: host}}}
	if secret != "" {
		node.Labels[secretLabel] = secret
	}
	return node
}

func newSecret(name string, labels map[string]string, configuration string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, Labels: labels},
		Data:       map[string][]byte{"osc.yaml": []byte(configuration)},
	}
}

func newPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
}

func newRequest(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: strings.ToLower(name)}}, key)
	kit.Must(t, err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: "example.org/none", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

package shoot

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// nodeAgentUser is the prefix of the user name of a node agent.
const nodeAgentUser = "gardener.cloud:node-agent:machine:"

// nodesJoin checks what a machine needs to become a node: the certificate of its node agent is approved, and of no machine that does not
// exist; the node agent reads its own configuration and no other; and Pods of system components get what the webhooks of the shoot's
// resource-manager add.
func (w *world) nodesJoin() {
	w.Helper()
	machines := &unstructured.UnstructuredList{}
	machines.SetGroupVersionKind(schema.GroupVersionKind{Group: "machine.sapcloud.io", Version: "v1alpha1", Kind: "MachineList"})
	kit.Must(w, w.seed.List(w.Context(), machines, client.InNamespace(technical)))
	if len(machines.Items) != 2 {
		w.Fatalf("there are %d Machines", len(machines.Items))
	}
	machine := machines.Items[0].GetName()
	w.decided(machine, certificatesv1.CertificateApproved)
	w.decided("stranger", certificatesv1.CertificateDenied)

	key := slices.Sorted(func(yield func(string) bool) {
		for name := range w.configurationOfNodes() {
			if !yield(name) {
				return
			}
		}
	})[0]
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine, Labels: map[string]string{constants.LabelWorkerPoolNodeAgentSecretName: key}}}
	kit.Must(w, w.admin().Create(w.Context(), node))
	w.authorized(machine, key, true)
	w.authorized(machine, "other", false)
	w.authorized("stranger", key, false)
	w.nodeLeaves(node)

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "one", Labels: map[string]string{"resources.gardener.cloud/managed-by": "gardener"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "one"}}},
	}
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "a Pod of a system component is changed", func() string {
		made := pod.DeepCopy()
		if err := w.admin().Create(w.Context(), made, client.DryRunAll); err != nil {
			return err.Error()
		}
		if made.Spec.NodeSelector[constants.LabelWorkerPoolSystemComponents] != "true" || len(made.Spec.Containers[0].Env) != 1 {
			return fmt.Sprintf("%+v", made.Spec)
		}
		return ""
	})
}

// nodeLeaves deletes a Node, and waits until no DaemonSet wants a Pod. kube-controller-manager does not notice that a Node is gone, only that its
// Pods are. In clusters, its garbage collection deletes them, but only those that are bound to the Node, and no kube-scheduler runs here.
func (w *world) nodeLeaves(node *corev1.Node) {
	w.Helper()
	eventually := func(what string, isDone func(appsv1.DaemonSet) bool) {
		w.Helper()
		kit.EventuallyTrue(w, what, func() bool {
			var daemons appsv1.DaemonSetList
			kit.Must(w, w.admin().List(w.Context(), &daemons))
			return !slices.ContainsFunc(daemons.Items, func(daemon appsv1.DaemonSet) bool { return !isDone(daemon) })
		})
	}
	eventually("DaemonSets for all Nodes want a Pod", func(daemon appsv1.DaemonSet) bool {
		return daemon.Status.DesiredNumberScheduled > 0 || len(daemon.Spec.Template.Spec.NodeSelector) > 0
	})
	kit.Must(w, w.admin().Delete(w.Context(), node))
	eventually("no DaemonSet wants a Pod", func(daemon appsv1.DaemonSet) bool {
		if daemon.Status.DesiredNumberScheduled > 0 {
			kit.Must(w, w.admin().DeleteAllOf(w.Context(), &corev1.Pod{}, client.InNamespace(daemon.Namespace), client.MatchingLabels(daemon.Spec.Selector.MatchLabels)))
		}
		return daemon.Status.DesiredNumberScheduled == 0
	})
}

// decided waits until the certificate of the node agent of a machine is approved or denied.
func (w *world) decided(machine string, want certificatesv1.RequestConditionType) {
	w.Helper()
	config := w.adminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", "system:authenticated"}}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(w, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: nodeAgentUser + machine, Organization: []string{constants.NodeAgentsGroup},
	}}, private)
	kit.Must(w, err)
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-agent-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	kit.Must(w, w.clientOf(config).Create(w.Context(), csr))
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("the request of %s is %s", machine, want), func() string {
		kit.Must(w, w.admin().Get(w.Context(), client.ObjectKeyFromObject(csr), csr))
		for _, condition := range csr.Status.Conditions {
			if condition.Type == want {
				return ""
			}
		}
		return fmt.Sprintf("%+v", csr.Status.Conditions)
	})
}

// authorized waits until the node agent of a machine may read a Secret, or may not.
func (w *world) authorized(machine, secret string, want bool) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("the node agent of %s may read %s: %t", machine, secret, want), func() string {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: nodeAgentUser + machine, Groups: []string{constants.NodeAgentsGroup},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Version: "v1", Namespace: metav1.NamespaceSystem, Name: secret},
		}}
		kit.Must(w, w.admin().Create(w.Context(), review))
		if review.Status.Allowed != want {
			return fmt.Sprintf("%+v", review.Status)
		}
		return ""
	})
}

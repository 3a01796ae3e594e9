package worker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

func nodeNamed(name string, annotations map[string]string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{constants.LabelWorkerPool: "small"}}}
}

// TestNodesOfMachines checks what Nodes show about their machines, and which Nodes are deleted because they have none.
func TestNodesOfMachines(t *testing.T) {
	since := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	nodes := []corev1.Node{
		nodeNamed("machine-a", nil), nodeNamed("machine-b", map[string]string{AnnotationDraining: since.Format(time.RFC3339)}),
		nodeNamed("machine-deleting", nil), nodeNamed("machine-gone", nil), nodeNamed("machine-removed", nil),
	}
	machines := withNodes([]Machine{{Name: "a"}, {Name: "b", Ready: true}, {Name: "deleting", Deleting: true}, {Name: "new"}, {Name: "removed"}}, nodes)
	if !machines[0].HasNode || !machines[0].Draining.IsZero() || !machines[1].Draining.Equal(since) || machines[1].Phase() != PhaseDraining || machines[3].HasNode {
		t.Errorf("the machines are %+v", machines)
	}
	if got := withoutMachine(nodes, machines, []string{"removed"}); !slices.Equal(got, []string{"machine-deleting", "machine-gone", "machine-removed"}) {
		t.Errorf("the Nodes %v are deleted", got)
	}
}

// TestDeleteNodes checks that only Nodes of machines are deleted, and that one that is gone is not an error.
func TestDeleteNodes(t *testing.T) {
	one, other, foreign := nodeNamed("machine-a", nil), nodeNamed("by-hand", nil), nodeNamed("machine-foreign", nil)
	foreign.Labels = nil
	kube := fake.NewClientset(&one, &other, &foreign)
	nodes, err := nodesOf(t.Context(), kube)
	if err != nil || len(nodes) != 1 || nodes[0].Name != "machine-a" {
		t.Fatalf("the Nodes of machines are %v, %v", nodes, err)
	}
	if err := deleteNodes(t.Context(), kube, []string{"machine-a", "machine-b"}); err != nil {
		t.Fatal(err)
	}
	left, err := kube.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 2 {
		t.Errorf("%d Nodes are left, want 2: %v", len(left.Items), err)
	}
}

// TestWaitsForNodes checks that nothing is decided without the Nodes of machines that have joined: they would count as empty.
func TestWaitsForNodes(t *testing.T) {
	deployment := Deployment{Name: "a"}
	deployment.NodeAgentSecretName = ptr.To("secret")
	ready := []Machine{{Name: "a", WasReady: true}}
	for name, test := range map[string]struct {
		in   inputs
		want bool
	}{
		"joined":        {inputs{deployments: []Deployment{deployment}, machines: ready}, true},
		"new":           {inputs{deployments: []Deployment{deployment}, machines: []Machine{{Name: "a"}}}, false},
		"no node agent": {inputs{deployments: []Deployment{{Name: "a"}}, machines: ready}, false},
		"hibernated":    {inputs{deployments: []Deployment{deployment}, machines: ready, hibernated: true}, false},
		"simulated":     {inputs{deployments: []Deployment{deployment}, machines: ready, options: local.Machines{Simulated: true}}, false},
	} {
		if got := test.in.waitsForNodes(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestShootConfig(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["shoot"] = &clientcmdapi.Cluster{Server: "https://kube-apiserver", CertificateAuthorityData: []byte("authority")}
	config.AuthInfos["shoot"] = &clientcmdapi.AuthInfo{TokenFile: "/does/not/exist"}
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := shootConfig("shoot--dev--blue", content, []byte("token"))
	if err != nil || got.Host != "https://kube-apiserver.shoot--dev--blue.svc" || got.BearerToken != "token" || string(got.CAData) != "authority" || got.ServerName != "kube-apiserver" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := shootConfig("shoot--dev--blue", nil, nil); err == nil || !strings.Contains(err.Error(), "no certificate authorities") {
		t.Errorf("without authorities: %v", err)
	}
}

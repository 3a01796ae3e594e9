package authorizer

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

func getNode(name string) call { return call{verb: "get", base: core, resource: "nodes", name: name} }

func getSecret(name string) call {
	return call{verb: "get", base: core, resource: "secrets", namespace: kubeSystem, name: name}
}

// TestNoNode checks that without a Node, access to the objects that belong to it is denied with a reason that names the missing Node.
// Resources that belong to no Node can be used.
func TestNoNode(t *testing.T) {
	f := newFixture(t)
	for mode, users := range map[string][]string{byMachine: {"m-none", "m-bare"}, byMachineSelected: {"m-none", "m-bare"}, byNode: {"n-none"}} {
		for _, user := range users {
			agent := f.newAgent(t, mode, prefix+user)
			want := fmt.Sprintf("no node for %q found", user)
			for _, call := range []call{
				getNode("n-own"), {verb: "patch", base: core, resource: "nodes", name: user},
				{verb: "list", base: core, resource: "pods", selector: "spec.nodeName=n-own"},
				{verb: "list", base: core, resource: "pods"}, {verb: "watch", base: core, resource: "pods"},
				{verb: "get", base: core, resource: "pods", namespace: "default", name: "pod-own"},
				{verb: "get", base: coordination, resource: "leases", namespace: kubeSystem, name: "gardener-node-agent-n-own"},
				{verb: "create", base: coordination, resource: "leases", namespace: kubeSystem},
			} {
				if status := agent.ask(call); !status.Denied || status.Reason != want {
					t.Errorf("%s %s: %+v, want %s", call.verb, call.path(), status, want)
				}
			}
			for _, call := range []call{
				{verb: "list", base: core, resource: "nodes"}, {verb: "create", base: certificates, resource: "certificatesigningrequests"},
				{verb: "create", base: core, resource: "events", namespace: "default"},
			} {
				if status := agent.ask(call); !status.Allowed {
					t.Errorf("%s %s: %+v", call.verb, call.path(), status)
				}
			}
		}
	}
}

// TestSecretsBeforeTheNode checks that a node agent can read its configuration before its Node exists. Its Machine determines which one.
// Without Machines, the agent may read the configurations of all worker pools.
func TestSecretsBeforeTheNode(t *testing.T) {
	f := newFixture(t)
	for user, wants := range map[string]map[string]string{
		byMachine + " m-new": {
			"osc-own": "allow", "file-of-all": "allow", "gardener-valitail": "allow", "osc-foreign": "deny", "file-of-own-host": "allow",
			"file-of-foreign-host": "allow", "file-of-foreign-pool": "deny",
		},
		byMachine + " m-bare": {"gardener-valitail": "allow", "osc-own": "deny", "": "deny", "file-of-all": "deny"},
		// A Machine that no longer exists: its certificate may still be valid.
		byMachine + " m-none": {"gardener-valitail": "deny", "osc-own": "deny", "shoot-access-cluster-admin": "deny"},
		byNode + " n-new": {
			"osc-own": "allow", "osc-foreign": "allow", "file-of-all": "allow", "file-of-foreign-pool": "allow", "gardener-valitail": "allow",
			"file-of-own-host": "allow", "none": "error", // one of the configurations cannot be read
		},
		byNode + " n-empty": {"gardener-valitail": "allow", "osc-own": "deny", "file-of-all": "deny"},
	} {
		mode, name, _ := strings.Cut(user, " ")
		agent := f.newAgent(t, mode, prefix+name)
		for secret, want := range wants {
			call := getSecret(secret)
			if secret == "" {
				call.verb = "list"
			}
			if status := agent.ask(call); word(status) != want {
				t.Errorf("%s, Secret %q: %+v, want %s", user, secret, status, want)
			}
		}
	}
}

// TestEmptyNamesMatchNothing checks that a Machine and a Node without the label with the Secret's name give no access to lists and watches
// of all Secrets and Leases.
func TestEmptyNamesMatchNothing(t *testing.T) {
	f := newFixture(t)
	for mode, user := range map[string]string{byMachine: "m-empty", byNode: "n-empty"} {
		agent := f.newAgent(t, mode, prefix+user)
		for _, verb := range []string{"list", "watch"} {
			for _, call := range []call{
				{verb: verb, base: core, resource: "secrets", namespace: kubeSystem},
				{verb: verb, base: coordination, resource: "leases", namespace: kubeSystem},
				{verb: verb, base: core, resource: "secrets", namespace: kubeSystem, selector: "type=Opaque"},
			} {
				if status := agent.ask(call); !status.Denied {
					t.Errorf("%s %s: %+v", call.verb, call.path(), status)
				}
			}
		}
	}
}

// TestForgedLabels checks that a node agent, which may write the labels of its Node, cannot use them to access Leases and Secrets that
// do not belong to a worker pool.
func TestForgedLabels(t *testing.T) {
	f := newFixture(t)
	for mode, user := range map[string]string{byMachine: "m-forged", byNode: "n-forged"} {
		agent := f.newAgent(t, mode, prefix+user)
		for _, call := range []call{
			{verb: "update", base: coordination, resource: "leases", namespace: kubeSystem, name: "kube-scheduler"},
			{verb: "get", base: coordination, resource: "leases", namespace: kubeSystem, name: "kube-scheduler"},
			getSecret("kube-scheduler"),
		} {
			if status := agent.ask(call); !status.Denied {
				t.Errorf("%s: %s %s: %+v", user, call.verb, call.path(), status)
			}
		}
	}
}

// TestLeaseNamesOnCreation checks that the name counts if the review has one. An API server sends no name if an object is posted. It sends
// one for an update that creates the object.
func TestLeaseNamesOnCreation(t *testing.T) {
	f := newFixture(t)
	for name, want := range map[string]string{"": "allow", "gardener-node-agent-n-own": "allow", "osc-own": "allow", "gardener-node-agent-n-foreign": "deny", "a": "deny"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: prefix + "m-own", Groups: []string{group, "mode:" + byMachine},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: kubeSystem, Name: name,
			},
		}}
		kit.Must(t, f.client.Create(t.Context(), review))
		if word(review.Status) != want {
			t.Errorf("%q: %+v, want %s", name, review.Status, want)
		}
	}
	// The real request: node agent n-empty creates its Lease.
	config := rest.CopyConfig(f.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: prefix + "m-empty", Groups: []string{group, "mode:" + byMachine}}
	scheme := f.client.Scheme()
	agent, err := client.New(config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	kit.Must(t, err)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kubeSystem, Name: "gardener-node-agent-n-empty"}}
	kit.Must(t, agent.Create(t.Context(), lease))
	kit.Must(t, agent.Update(t.Context(), lease))
}

// TestCachesThatAreBehind checks that an object that was just created is not denied.
func TestCachesThatAreBehind(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		name := fmt.Sprintf("late-%d", i)
		kit.Must(t, f.client.Create(t.Context(), newMachine(name, "n-"+name, "osc-own")))
		kit.Must(t, f.client.Create(t.Context(), newNode("n-"+name, name, "osc-own")))
		if status := f.newAgent(t, byMachine, prefix+name).ask(getNode("n-" + name)); !status.Allowed {
			t.Errorf("Machine %s: %+v", name, status)
		}
		if status := f.newAgent(t, byNode, prefix+"n-"+name).ask(getNode("n-" + name)); !status.Allowed {
			t.Errorf("Node %s: %+v", name, status)
		}
		kit.Must(t, f.client.Create(t.Context(), newSecret("osc-"+name, map[string]string{poolLabel: "a"}, strings.ReplaceAll(ownConfiguration, "file-of-all", "file-"+name))))
		kit.Must(t, f.client.Create(t.Context(), newMachine("next-"+name, "", "osc-"+name)))
		if status := f.newAgent(t, byMachine, prefix+"next-"+name).ask(getSecret("file-" + name)); !status.Allowed {
			t.Errorf("Secret %s: %+v", name, status)
		}
	}
}

// TestChanges checks that a new configuration counts. Secrets that it no longer refers to are denied, and so is a Node that no longer
// exists.
func TestChanges(t *testing.T) {
	f := newFixture(t)
	secret := newSecret("osc-changing", map[string]string{poolLabel: "a"}, ownConfiguration)
	node := newNode("n-changing", "host", "osc-changing")
	machine := newMachine("m-changing", "n-changing", "osc-changing")
	for _, object := range []client.Object{secret, node, machine} {
		kit.Must(t, f.client.Create(t.Context(), object))
	}
	agent := f.newAgent(t, byMachine, prefix+"m-changing")
	eventually := func(reason, want string, call call) {
		t.Helper()
		kit.Eventually(t, reason, func() string {
			if status := agent.ask(call); word(status) != want {
				return fmt.Sprintf("%+v", status)
			}
			return ""
		})
	}
	eventually("the first configuration is in effect", "allow", getSecret("file-of-all"))
	secret.Data["osc.yaml"] = []byte(strings.ReplaceAll(ownConfiguration, "file-of-all", "file-of-later"))
	kit.Must(t, f.client.Update(t.Context(), secret))
	eventually("the next configuration is in effect", "allow", getSecret("file-of-later"))
	eventually("the first configuration is no longer in effect", "deny", getSecret("file-of-all"))

	eventually("the Node can be read", "allow", getNode("n-changing"))
	kit.Must(t, f.client.Delete(t.Context(), node))
	eventually("the deleted Node cannot be read", "deny", getNode("n-changing"))
	kit.Must(t, f.client.Delete(t.Context(), machine))
	eventually("a deleted Machine has no access", "deny", getSecret("gardener-valitail"))
}

// TestBadConfiguration checks that a bad configuration is an error that does not reveal content of the Secret.
func TestBadConfiguration(t *testing.T) {
	f := newFixture(t)
	for mode, user := range map[string]string{byMachine: "m-bad", byNode: "n-bad"} {
		agent := f.newAgent(t, mode, prefix+user)
		if status := agent.ask(getSecret("osc-bad")); !status.Allowed {
			t.Errorf("%s cannot read its own configuration: %+v", user, status)
		}
		status := agent.ask(getSecret("file-of-all"))
		if status.EvaluationError != "500 the key osc.yaml of Secret kube-system/osc-bad is not an OperatingSystemConfig in YAML" {
			t.Errorf("%s: %+v", user, status)
		}
	}
}

// TestPodThatIsBoundLater checks that the Node of a Pod at the time of the request counts.
func TestPodThatIsBoundLater(t *testing.T) {
	f := newFixture(t)
	pod := newPod("pod-later", "")
	kit.Must(t, f.client.Create(t.Context(), pod))
	agent := f.newAgent(t, byMachineSelected, prefix+"m-own")
	get := call{verb: "get", base: core, resource: "pods", namespace: "default", name: "pod-later"}
	if status := agent.ask(get); !status.Denied {
		t.Errorf("without a Node: %+v", status)
	}
	kit.Must(t, f.client.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n-own"}}))
	kit.Eventually(t, "the Pod belongs to the agent's Node", func() string {
		if status := agent.ask(get); !status.Allowed {
			return "it does not: " + status.Reason
		}
		return ""
	})
}

// TestReads checks that cached objects are not read again. Other reads are metadata only, except for configurations and requests.
func TestReads(t *testing.T) {
	f := newFixture(t)
	agent := f.newAgent(t, byMachineSelected, prefix+"m-own")
	fromCaches := []call{
		getNode("n-own"), {verb: "list", base: core, resource: "nodes"}, getSecret("osc-own"), getSecret("file-of-all"), getSecret("file-of-own-host"),
		{verb: "list", base: core, resource: "pods", selector: "spec.nodeName=n-own"}, {verb: "create", base: core, resource: "events", namespace: "default"},
		{verb: "update", base: coordination, resource: "leases", namespace: kubeSystem, name: "osc-own"},
		{verb: "list", base: core, resource: "configmaps"}, // denied in any case
	}
	kit.Eventually(t, "the caches hold the requested objects", func() string {
		f.requests.Forget()
		for _, call := range fromCaches {
			agent.ask(call)
		}
		if read := readBy(f.requests); len(read) > 0 {
			return fmt.Sprint(read)
		}
		return ""
	})

	f.requests.Forget()
	agent.ask(call{verb: "delete", base: core, resource: "pods", namespace: "default", name: "pod-own"})
	agent.ask(call{verb: "get", base: certificates, resource: "certificatesigningrequests", name: "csr-m-own"})
	want := []string{"GET /api/v1/namespaces/default/pods", "GET /apis/certificates.k8s.io/v1/certificatesigningrequests/csr-m-own"}
	if read := readBy(f.requests); !slices.Equal(read, want) {
		t.Errorf("read was %q, want %q", read, want)
	}
}

// readBy returns the requests that read objects and are not watches.
func readBy(requests *kit.Requests) []string {
	var read []string
	for _, request := range requests.Single() {
		if request.Method == http.MethodGet && strings.Count(request.Path, "/") > 3 || strings.HasPrefix(request.Path, "/api/v1/n") {
			read = append(read, request.String())
		}
	}
	return read
}

package authorizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	core         = "/api/v1"
	certificates = "/apis/certificates.k8s.io/v1"
	coordination = "/apis/coordination.k8s.io/v1"
	events       = "/apis/events.k8s.io/v1"
	kubeSystem   = "kube-system"
)

// row is an object, or a collection if it has no name, and the allowed verbs. All other verbs are denied.
type row struct {
	base, resource, namespace, name, selector string
	// whose describes the name.
	whose   string
	allowed string
}

var (
	namedVerbs      = []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"}
	collectionVerbs = []string{"list", "watch", "create", "deletecollection"}
	subVerbs        = []string{"get", "update", "patch", "create"}
)

// rowsForAll are the rows of every mode, for the node agent of Node n-own and the CertificateSigningRequest of the given name.
func rowsForAll(request string) []row {
	return []row{
		{certificates, "certificatesigningrequests", "", request, "", "own", "get"},
		{certificates, "certificatesigningrequests", "", "csr-foreign", "", "foreign", ""},
		{certificates, "certificatesigningrequests", "", "csr-none", "", "none", ""},
		{certificates, "certificatesigningrequests", "", "", "", "all", "create"},
		{certificates, "certificatesigningrequests/approval", "", request, "", "own", ""},
		{certificates, "certificatesigningrequests/status", "", request, "", "own", ""},
		{core, "events", "default", "a", "", "any", "patch"},
		{core, "events", "default", "", "", "all", "create"},
		{core, "events", kubeSystem, "", "", "all", "create"},
		{events, "events", "default", "a", "", "any", "patch"},
		{events, "events", "default", "", "", "all", "create"},
		{coordination, "leases", kubeSystem, "gardener-node-agent-n-own", "", "own", "get list watch update"},
		{coordination, "leases", kubeSystem, "osc-own", "", "own", "get list watch update"},
		{coordination, "leases", kubeSystem, "gardener-node-agent-n-foreign", "", "foreign", ""},
		{coordination, "leases", kubeSystem, "gardener-node-agent-", "", "foreign", ""},
		{coordination, "leases", kubeSystem, "osc-foreign", "", "foreign", ""},
		{coordination, "leases", kubeSystem, "", "", "all", "create"},
		{coordination, "leases", "default", "gardener-node-agent-n-own", "", "own", ""},
		{coordination, "leases", "default", "", "", "all", ""},
		{coordination, "leases", "", "", "", "all", ""},
		{core, "nodes", "", "n-own", "", "own", "get list watch update patch"},
		{core, "nodes", "", "n-foreign", "", "foreign", "list watch"},
		{core, "nodes", "", "n-none", "", "none", "list watch"},
		{core, "nodes", "", "", "", "all", "list watch"},
		{core, "nodes/status", "", "n-own", "", "own", "get update patch"},
		{core, "nodes/status", "", "n-foreign", "", "foreign", ""},
		{core, "nodes/proxy", "", "n-own", "", "own", ""},
		{core, "pods", "default", "pod-own", "", "own", "get list watch delete"},
		{core, "pods", "default", "pod-foreign", "", "foreign", ""},
		{core, "pods", "default", "pod-unbound", "", "none", ""},
		{core, "pods", "default", "pod-none", "", "none", ""},
		{core, "pods", "", "pod-own", "", "own", ""},
		{core, "pods", "", "", "spec.nodeName=n-own", "own", "list watch"},
		{core, "pods", "default", "", "spec.nodeName=n-own", "own", "list watch"},
		{core, "pods", "default", "", "spec.nodeName=n-own,status.phase!=Failed", "own", "list watch"},
		{core, "pods", "", "", "spec.nodeName=n-foreign", "foreign", ""},
		{core, "pods", "", "", "spec.nodeName!=n-own", "foreign", ""},
		{core, "pods", "", "", "status.phase=Running", "all", ""},
		{core, "pods", "", "", "", "all", ""},
		{core, "pods/log", "default", "pod-own", "", "own", ""},
		{core, "pods/eviction", "default", "pod-own", "", "own", ""},
		{core, "pods/exec", "default", "pod-own", "", "own", ""},
		{core, "secrets", kubeSystem, "gardener-valitail", "", "all", "get list watch"},
		{core, "secrets", kubeSystem, "gardener-opentelemetry-collector", "", "all", "get list watch"},
		{core, "secrets", kubeSystem, "shoot-access-kube-controller-manager", "", "all", "get list watch"},
		{core, "secrets", kubeSystem, "shoot-access-kube-scheduler", "", "all", "get list watch"},
		{core, "secrets", kubeSystem, "shoot-access-cluster-admin", "", "all", "get list watch"},
		{core, "secrets", kubeSystem, "osc-own", "", "own", "get list watch"},
		{core, "secrets", kubeSystem, "file-of-all", "", "own", "get list watch"},
		{core, "secrets", kubeSystem, "file-of-extension", "", "own", "get list watch"},
		{core, "secrets", kubeSystem, "file-of-own-host", "", "own", "get list watch"},
		{core, "secrets", kubeSystem, "file-of-foreign-host", "", "foreign", ""},
		{core, "secrets", kubeSystem, "file-of-foreign-pool", "", "foreign", ""},
		{core, "secrets", kubeSystem, "osc-foreign", "", "foreign", ""},
		{core, "secrets", kubeSystem, "none", "", "none", ""},
		{core, "secrets", kubeSystem, "", "", "all", ""},
		{core, "secrets", "default", "gardener-valitail", "", "foreign", ""},
		{core, "secrets", "default", "osc-own", "", "foreign", ""},
		{core, "secrets", "", "osc-own", "", "own", ""},
		{core, "secrets", "", "", "", "all", ""},
		{core, "configmaps", kubeSystem, "a", "", "all", ""},
		{core, "configmaps", kubeSystem, "", "", "all", ""},
		{core, "serviceaccounts/token", kubeSystem, "default", "", "all", ""},
		{core, "namespaces", "", "default", "", "all", ""},
		{"/apis/apps/v1", "deployments", kubeSystem, "", "", "all", ""},
		{"/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews", "", "", "", "all", ""},
		{"/apis/none.example.org/v1", "nodes", "", "n-own", "", "own", ""},
	}
}

// withoutSelectors returns the rows as they are if selectors do not count: all Pods are visible.
func withoutSelectors(rows []row) []row {
	for i := range rows {
		if rows[i].resource == "pods" && !strings.Contains(rows[i].allowed, "list") {
			rows[i].allowed = strings.TrimSpace("list watch " + rows[i].allowed)
		}
	}
	return rows
}

func (r row) calls() []call {
	resource, subresource, isSub := strings.Cut(r.resource, "/")
	verbs := collectionVerbs
	switch {
	case isSub:
		verbs = subVerbs
	case r.name != "" && r.namespace == "" && slices.Contains([]string{"pods", "secrets", "leases"}, r.resource):
		verbs = []string{"list", "watch"} // by the selector of the name
	case r.name != "":
		verbs = namedVerbs
	}
	var calls []call
	for _, verb := range verbs {
		calls = append(calls, call{
			verb: verb, base: r.base, namespace: r.namespace, resource: resource, subresource: subresource, name: r.name, selector: r.selector,
		})
	}
	return calls
}

// TestMatrix sends a request for every resource, verb and object, and compares the webhook's answer and the API server's.
func TestMatrix(t *testing.T) {
	f := newFixture(t)
	for name, test := range map[string]struct {
		mode, user string
		rows       []row
	}{
		"by Machine":                  {byMachine, "m-own", withoutSelectors(rowsForAll("csr-m-own"))},
		"by Machine, with selectors":  {byMachineSelected, "m-own", rowsForAll("csr-m-own")},
		"by Node, with selectors":     {byNode, "n-own", rowsForAll("csr-n-own")},
		"by Node, reviews of v1beta1": {byNodeBeta, "n-own", withoutSelectors(rowsForAll("csr-n-own"))},
	} {
		t.Run(name, func(t *testing.T) {
			agent := f.newAgent(t, test.mode, prefix+test.user)
			var table strings.Builder
			for _, row := range test.rows {
				fmt.Fprintf(&table, "%-40s %-12s %-8s %-36s", row.resource, row.namespace, row.whose, row.name+" "+row.selector)
				for _, call := range row.calls() {
					want := "deny"
					if slices.Contains(strings.Fields(row.allowed), call.verb) {
						want = "allow"
					}
					got := agent.ask(call)
					fmt.Fprintf(&table, " %s:%s", call.verb, word(got))
					if word(got) != want {
						t.Errorf("%s %s?%s: %s, want %s (%s%s)", call.verb, call.path(), call.query(), word(got), want, got.Reason, got.EvaluationError)
					}
				}
				table.WriteString("\n")
			}
			t.Logf("decisions for %s:\n%s", agent.user, &table)
			if want := "authorization.k8s.io/" + modes[test.mode]; answers.version(test.mode, agent.user) != want {
				t.Errorf("the answers have version %s, want %s", answers.version(test.mode, agent.user), want)
			}
		})
	}
}

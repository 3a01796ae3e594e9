package care

import (
	"strings"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestTunnel checks that the condition of the system components says whether the API server reaches the nodes, with the last error.
func TestTunnel(t *testing.T) {
	const refused = "APIService v1beta1.metrics.k8s.io is unhealthy: proxy error from vpn-seed-server:9443, code 503: no agent is connected"
	workers := func(o *Observation) { o.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "pool"}} }
	part := func(name, class string, healthy resourcesv1alpha1.ConditionStatus, change ...func(*resourcesv1alpha1.ManagedResource)) func(*Observation) {
		if class != "" {
			change = append(change, labelled(corev1beta1.ShootSystemComponentsHealthy))
		}
		return also(component(name, class, healthy, change...))
	}
	unanswered := func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Status.Conditions[1].Reason, mr.Status.Conditions[1].Message = "APIServiceUnhealthy", refused
	}
	outdated := func(mr *resourcesv1alpha1.ManagedResource) { mr.Generation++ }
	for name, test := range map[string]struct {
		change []func(*Observation)
		// want are the reason of the condition and parts of its message.
		want []string
	}{
		"works": {
			[]func(*Observation){workers, part(tunnelServers, "seed", "True"), part(tunnelAgents, "", "True"), part(tunnelUser, "", "True")},
			[]string{reasonSystem},
		},
		"is not known": {[]func(*Observation){workers, part(tunnelAgents, "", "True")}, []string{reasonSystem}},
		"no workers":   {[]func(*Observation){part(tunnelServers, "seed", "True")}, []string{reasonSystem}},
		"no agents": {
			[]func(*Observation){workers, part(tunnelServers, "seed", "False")}, []string{reasonNoTunnel, "have not been deployed; ManagedResource"},
		},
		"not connected": {
			[]func(*Observation){workers, part(tunnelServers, "seed", "False"), part(tunnelAgents, "", "False"), part(tunnelUser, "", "False", unanswered)},
			[]string{reasonTunnelBroken, "no agent of the tunnel is connected, the last request was not answered; ManagedResource", refused},
		},
		"connected, but nothing is reached": {
			[]func(*Observation){workers, part(tunnelServers, "seed", "True"), part(tunnelAgents, "", "True"), part(tunnelUser, "", "False", unanswered)},
			[]string{reasonTunnelBroken, "nodes, Pods and Services: the last request was not answered; ManagedResource", refused},
		},
		"metrics-server does not run": {
			[]func(*Observation){workers, part(tunnelServers, "seed", "True"), part(tunnelAgents, "", "True"), part(tunnelUser, "", "False")},
			[]string{"DeploymentUnhealthy"},
		},
		"outdated": {
			[]func(*Observation){workers, part(tunnelServers, "seed", "False", outdated), part(tunnelAgents, "", "True")}, []string{"OutdatedStatus"},
		},
	} {
		conditions, _ := healthy(test.change...).Conditions()
		found := corev1beta1.FindCondition(conditions, corev1beta1.ShootSystemComponentsHealthy)
		for _, want := range test.want {
			if text := found.Reason + ": " + found.Message; !strings.Contains(text, want) {
				t.Errorf("%s: %q, want %q", name, text, want)
			}
		}
		if found.Reason != test.want[0] {
			t.Errorf("%s: the reason is %s, want %s", name, found.Reason, test.want[0])
		}
	}
}

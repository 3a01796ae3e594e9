package ui

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestFullViews checks views with as much content as in real clusters: long names and messages, many rows, several classes.
func TestFullViews(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	words := []state.Word{state.Ready, state.Ready, state.Ready, state.Unhealthy, state.Ready, state.Progressing, state.Ready, state.Failed}
	messages := map[state.Word]string{
		state.Failed:      "Could not apply all resources: Deployment \"shop/storefront\": admission webhook \"validate.policy.example\" denied the request: containers must not run as root, and images have to be of the company's registry",
		state.Unhealthy:   "Deployment \"shop/storefront\" is unhealthy: condition \"Available\" has invalid status False (expected True) due to MinimumReplicasUnavailable: Deployment does not have minimum availability.",
		state.Progressing: "Deployment \"shop/storefront\" is progressing: 1 of 3 updated replicas are available",
	}
	names := []string{"storefront", "cart", "extension-provider-gcp-controlplane-shoot-webhooks", "monitoring", "ingress", "vpn", "dns", "certificates"}
	for i := range 48 {
		word := words[i%len(words)]
		mr := w.deliver(t, namespace, fmt.Sprintf("%s-%02d", names[(i*5)%len(names)], i), state.Ready, settings(fmt.Sprintf("settings-%02d", i)))
		w.write(t, mr, word, messages[word])
	}
	var manifests []string
	for i := range 12 {
		manifests = append(manifests, settings(fmt.Sprintf("configuration-of-component-%d-with-a-name-that-is-as-long-as-those-that-charts-make", i)))
	}
	mr := w.deliver(t, namespace, "webshop", state.Unhealthy, shop+webserver+"---\n"+strings.Join(manifests, "---\n"))
	w.write(t, mr, state.Unhealthy, messages[state.Unhealthy])
	w.pod(t, namespace, "web")
	w.edit(t, namespace, "settings", "red")
	for i, reason := range []string{"FailedScheduling", "BackOff", "Corrected", "Unhealthy"} {
		kit.Must(t, w.client.Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1." + strings.ToLower(reason)}, Reason: reason, Count: int32(i*i + 1), LastTimestamp: metav1.Now(),
			Message: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
			Type:    map[bool]string{true: "Normal", false: "Warning"}[reason == "Corrected"], InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "web-1"},
		}))
	}
	p := w.serve(t, "-n", namespace).open(t, "#/")
	p.await("all ManagedResources are listed", `document.querySelector("[role=grid]")?.ariaRowCount === "50"`)
	p.look("full-list")
	p.lookWide("full-list")
	for tab, text := range map[string]string{"why": "Preemption", "tree": "as-long-as", "diff": "would be changed", "events": "Preemption", "history": "No changes yet"} {
		p.goTo("#/mr/" + namespace + "/webshop?tab=" + tab)
		p.says(text)
		p.look("full-" + tab)
		p.lookWide("full-" + tab)
	}
	p.goTo("#/fleet")
	p.says("Drift and fights")
	p.lookWide("full-fleet")
}

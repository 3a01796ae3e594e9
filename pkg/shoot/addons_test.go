package shoot

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// withAddons enables all addons.
func withAddons(in *Inputs) {
	in.Shoot.Spec.Addons = &corev1beta1.Addons{
		KubernetesDashboard: &corev1beta1.KubernetesDashboard{Addon: corev1beta1.Addon{Enabled: true}},
		NginxIngress:        &corev1beta1.NginxIngress{Addon: corev1beta1.Addon{Enabled: true}},
	}
}

// TestAddons checks that a Shoot has the addons that it enables, that they are removed when it disables them, and that the load balancer of
// an addon is deleted before the machines and the controllers of the infrastructure.
func TestAddons(t *testing.T) {
	in := upWithWorkers(t, withAddons, emittedAll(t, withAddons))
	if got := bundlesOf(planOf(t, in)); !slices.Contains(got, bundleDashboard) || !slices.Contains(got, bundleIngress) {
		t.Errorf("the plan has %v", got)
	}
	off := upWithWorkers(t, emittedAll(t, withAddons), func(in *Inputs) {
		withAddons(in)
		in.Shoot.Spec.Addons.NginxIngress.Enabled = false
	})
	plan := planOf(t, off)
	if len(plan.Tombstones) != 1 || plan.Tombstones[0].Name != bundleIngress {
		t.Errorf("tombstones %+v", plan.Tombstones)
	}
	deleting := upWithWorkers(t, withAddons, emittedAll(t, withAddons), cleaned, func(in *Inputs) { in.Deleting = true })
	after := map[string][]flow.Key{}
	for _, tombstone := range planOf(t, deleting).Tombstones {
		after[tombstone.Name] = tombstone.After
	}
	if !slices.Contains(after[bundleWorker], in.key(bundleIngress)) || len(after[bundleIngress]) > 0 {
		t.Errorf("the Worker is deleted after %v, the ingress controller after %v", after[bundleWorker], after[bundleIngress])
	}
	if !slices.Contains(after[bundleDashboard], in.key(bundleWorker)) {
		t.Errorf("the dashboard is deleted after %v", after[bundleDashboard])
	}
}

// TestSettingsOfAddons checks that each field of an addon has its effect.
func TestSettingsOfAddons(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1beta1.Addons)
		text   string
	}{
		"spec.addons.kubernetesDashboard.authenticationMode": {func(addons *corev1beta1.Addons) {
			addons.KubernetesDashboard.AuthenticationMode = ptr.To("basic")
		}, "--authentication-mode=basic"},
		"spec.addons.nginxIngress.loadBalancerSourceRanges": {func(addons *corev1beta1.Addons) {
			addons.NginxIngress.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		}, "192.0.2.0/24"},
		"spec.addons.nginxIngress.config": {func(addons *corev1beta1.Addons) {
			addons.NginxIngress.Config = map[string]string{"worker-processes": "7"}
		}, `worker-processes: "7"`},
		"spec.addons.nginxIngress.externalTrafficPolicy": {func(addons *corev1beta1.Addons) {
			addons.NginxIngress.ExternalTrafficPolicy = ptr.To(corev1.ServiceExternalTrafficPolicyLocal)
		}, "externalTrafficPolicy: Local"},
	} {
		before := upWithWorkers(t, withAddons)
		after := upWithWorkers(t, withAddons, func(in *Inputs) { test.change(in.Shoot.Spec.Addons) })
		if text, changed := changes(t, planOf(t, before), planOf(t, after)); len(changed) != 2 || !strings.Contains(text, test.text) {
			t.Errorf("%s changes %v, want %q:\n%s", name, changed, test.text, text)
		}
	}
}

// TestDeletionEndsWithAddons deletes a Shoot with all addons.
func TestDeletionEndsWithAddons(t *testing.T) {
	s := newSimulation(t, known(t, withWorkers, withAddons))
	s.settle()
	if s.store.mrs[client.ObjectKey(s.in.key(bundleIngress))] == nil {
		t.Fatal("the Shoot has no addon")
	}
	story := stories()[0]
	s.live(t, story).delete(story)
}

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// logInstallations logs the conditions of ControllerInstallations and the Pods of their extensions whenever they change,
// until stop is called.
func (c *cluster) logInstallations(f *fleet.Fleet) (stop func()) {
	ended, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		seen, since := map[string]string{}, map[string]time.Time{}
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
				c.logChanges(f, seen, since)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// logChanges logs the changes since the last call. Times are relative to the first sight of an installation.
func (c *cluster) logChanges(f *fleet.Fleet, seen map[string]string, since map[string]time.Time) {
	all := &corev1beta1.ControllerInstallationList{}
	if f.List(c.ctx, all) != nil {
		return // the API server of the garden does not respond
	}
	is := map[string]string{}
	for i := range all.Items {
		is[all.Items[i].Name] = c.describe(f, &all.Items[i])
	}
	for name, text := range is {
		if since[name].IsZero() {
			since[name] = time.Now()
		}
		if seen[name] != text {
			c.t.Logf("ControllerInstallation %s after %.1f s: %s", name, time.Since(since[name]).Seconds(), text)
		}
		seen[name] = text
	}
	for name := range seen {
		if _, exists := is[name]; !exists {
			c.t.Logf("ControllerInstallation %s after %.1f s: deleted", name, time.Since(since[name]).Seconds())
			delete(seen, name)
			delete(since, name)
		}
	}
}

// describe describes an installation by its conditions and the Pods of its extension.
func (c *cluster) describe(f *fleet.Fleet, installation *corev1beta1.ControllerInstallation) string {
	var parts []string
	if installation.DeletionTimestamp != nil {
		parts = append(parts, "deleting")
	}
	for _, condition := range installation.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s (%s)", condition.Type, condition.Status, condition.Reason))
	}
	pods := &corev1.PodList{}
	if err := f.List(c.ctx, pods, client.InNamespace("extension-"+installation.Name)); err != nil {
		return strings.Join(append(parts, err.Error()), ", ")
	}
	for i := range pods.Items {
		parts = append(parts, "Pod "+string(pods.Items[i].Status.Phase))
	}
	return strings.Join(parts, ", ")
}

// installed checks that the Seed needs provider-local, and that it is installed, healthy and running.
func (c *cluster) installed(f *fleet.Fleet) {
	c.t.Helper()
	all := &corev1beta1.ControllerInstallationList{}
	must(c.t, f.List(c.ctx, all))
	if len(all.Items) != 1 || all.Items[0].Spec.RegistrationRef.Name != "provider-local" {
		c.t.Fatalf("the ControllerInstallations are %+v, want one of provider-local", all.Items)
	}
	wanted := map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
		corev1beta1.ControllerInstallationValid: corev1beta1.ConditionTrue, corev1beta1.ControllerInstallationInstalled: corev1beta1.ConditionTrue,
		corev1beta1.ControllerInstallationHealthy: corev1beta1.ConditionTrue, corev1beta1.ControllerInstallationProgressing: corev1beta1.ConditionFalse,
		corev1beta1.ControllerInstallationRequired: corev1beta1.ConditionTrue, // by the Shoot
	}
	for _, condition := range all.Items[0].Status.Conditions {
		if wanted[condition.Type] == condition.Status {
			delete(wanted, condition.Type)
		}
	}
	if len(wanted) > 0 {
		c.t.Errorf("the conditions are %+v, want %v", all.Items[0].Status.Conditions, wanted)
	}
	namespace, pods := "extension-"+all.Items[0].Name, &corev1.PodList{}
	must(c.t, c.List(c.ctx, pods, client.InNamespace(namespace)))
	waiting := func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning }
	if len(pods.Items) == 0 || slices.ContainsFunc(pods.Items, waiting) { // one, or two after an update, which the webhook for high availability sees
		c.t.Errorf("the namespace %s has the Pods %+v, want running ones", namespace, pods.Items)
	}
}

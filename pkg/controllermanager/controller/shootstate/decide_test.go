package shootstate

import (
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	if got := Decide(nil); got != release {
		t.Errorf("without a Shoot: %s", got)
	}
	if got := Decide(&corev1beta1.Shoot{}); got != leave {
		t.Errorf("without an operation: %s", got)
	}
	for _, test := range []struct {
		kind, state string
		want        Decision
	}{
		{"Create", "Processing", leave}, {"Create", "Succeeded", leave}, {"Delete", "Processing", leave}, {"Delete", "Succeeded", leave},
		{"Reconcile", "Processing", release}, {"Reconcile", "Succeeded", release}, {"Reconcile", "Failed", release},
		{"Migrate", "Processing", add}, {"Migrate", "Error", add}, {"Migrate", "Aborted", add}, {"Migrate", "Succeeded", add},
		{"Restore", "Pending", add}, {"Restore", "Processing", add}, {"Restore", "Failed", add}, {"Restore", "Succeeded", release},
	} {
		shoot := &corev1beta1.Shoot{}
		shoot.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationType(test.kind), State: corev1beta1.LastOperationState(test.state), Description: "long",
		}
		kept := &corev1beta1.Shoot{}
		Keep(kept, shoot)
		if got := Decide(shoot); got != test.want || Decide(kept) != got || kept.Status.LastOperation.Description != "" {
			t.Errorf("%s %s: %s, want %s", test.kind, test.state, got, test.want)
		}
	}
}

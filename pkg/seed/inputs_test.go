package seed

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// TestDeadline checks that an expired deadline remains expired, and that another error does not end the waiting time.
func TestDeadline(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		state       corev1beta1.LastOperationState
		description string
		want        time.Time
	}{
		"processing":  {corev1beta1.LastOperationStateProcessing, "waits", at.Add(-time.Second).Add(extensionTimeout)},
		"not in time": {corev1beta1.LastOperationStateError, "Not in time: extensions are not ready", at},
		"other error": {corev1beta1.LastOperationStateError, "The API server does not answer", at.Add(extensionTimeout)},
		"succeeded":   {corev1beta1.LastOperationStateSucceeded, "", at.Add(extensionTimeout)},
	} {
		seed := &corev1beta1.Seed{}
		seed.Status.LastOperation = &corev1beta1.LastOperation{State: test.state, Description: test.description, LastUpdateTime: metav1.NewTime(at.Add(-time.Second))}
		if got := (Inputs{Seed: seed, Now: at}).deadline(); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestDigestOfConfiguration checks that a setting of gardenlet that no bundle depends on does not change the digest of the
// inputs.
func TestDigestOfConfiguration(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*gardenletv1alpha1.GardenletConfiguration)
		changes bool
	}{
		"port":      {func(c *gardenletv1alpha1.GardenletConfiguration) { c.Server.Metrics.Port++ }, false},
		"threshold": {func(c *gardenletv1alpha1.GardenletConfiguration) { c.Controllers.SeedCare.SyncPeriod = nil }, false},
		"log level": {func(c *gardenletv1alpha1.GardenletConfiguration) { c.LogLevel = "debug" }, true},
		"workers": {func(c *gardenletv1alpha1.GardenletConfiguration) {
			c.ETCDConfig.ETCDController.Workers = ptr.To[int64](7)
		}, true},
	} {
		before, errBefore := known(t).digest()
		after, errAfter := known(t, func(in *Inputs) { test.change(in.Config) }).digest()
		if errBefore != nil || errAfter != nil || (before != after) != test.changes {
			t.Errorf("%s: the digest is %s, previously %s: %v %v", name, after, before, errBefore, errAfter)
		}
	}
}

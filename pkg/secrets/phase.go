package secrets

import (
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Advance returns the phase of a rotation after the present one, or the reason why it stays. Unsettled is what flow.Unsettled says of the plan
// for this phase, read from the API server: a phase that moves on while something still uses what is about to go locks users out. Workers
// are the pools that have not been rolled out yet.
func Advance(phase corev1beta1.CredentialsRotationPhase, unsettled, workers []string) (corev1beta1.CredentialsRotationPhase, string) {
	next, moves := map[corev1beta1.CredentialsRotationPhase]corev1beta1.CredentialsRotationPhase{
		corev1beta1.RotationPreparing:                      corev1beta1.RotationPrepared,
		corev1beta1.RotationPreparingWithoutWorkersRollout: corev1beta1.RotationWaitingForWorkersRollout,
		corev1beta1.RotationWaitingForWorkersRollout:       corev1beta1.RotationPrepared,
		corev1beta1.RotationCompleting:                     corev1beta1.RotationCompleted,
	}[phase]
	switch {
	case !moves:
		return phase, ""
	case len(unsettled) > 0:
		return phase, strings.Join(unsettled, "; ")
	case next == corev1beta1.RotationPrepared && len(workers) > 0:
		return phase, fmt.Sprintf("worker pools have to be rolled out: %s", strings.Join(workers, ", "))
	}
	return next, ""
}

// Deletable returns those of the unused Secrets that may be deleted: none while anything is unsettled, and none that is referred to by an
// emitted revision or a Pod.
func Deletable(result Result, unsettled []string, referred func(name string) bool) []Secret {
	if len(unsettled) > 0 || len(result.Missing) > 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(result.Unused), func(secret Secret) bool { return referred(secret.Name) })
}

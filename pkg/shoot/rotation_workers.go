package shoot

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// deferRollout makes a rotation that has just started wait for the rollout of the worker pools, which users request. Until then, nodes keep
// the key that they had: before is when the previous rotation began, nil for never.
func deferRollout(c rotation.Cycle, shoot *corev1beta1.Shoot, before *metav1.Time) {
	if c.Pending == nil || len(shoot.Spec.Provider.Workers) == 0 {
		return
	}
	*c.Phase = corev1beta1.RotationPreparingWithoutWorkersRollout
	for _, worker := range shoot.Spec.Provider.Workers {
		*c.Pending = append(*c.Pending, corev1beta1.PendingWorkersRollout{Name: worker.Name, LastInitiationTime: before})
	}
}

// withoutRollout reports whether an operation starts rotations that do not replace nodes at once.
func withoutRollout(operation string) bool {
	switch operation {
	case constants.OperationRotateCredentialsStartWithoutWorkersRollout, constants.OperationRotateCAStartWithoutWorkersRollout,
		constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout:
		return true
	}
	return false
}

// rollOut ends the wait of pools for their rollout, which changes their keys.
func rollOut(c rotation.Cycle, pools []string) {
	if c.Pending != nil {
		*c.Pending = slices.DeleteFunc(*c.Pending, func(one corev1beta1.PendingWorkersRollout) bool { return slices.Contains(pools, one.Name) })
	}
}

// forgetPools ends the wait for pools that the Shoot no longer has.
func forgetPools(c rotation.Cycle, shoot *corev1beta1.Shoot) {
	if c.Pending == nil {
		return
	}
	*c.Pending = slices.DeleteFunc(*c.Pending, func(one corev1beta1.PendingWorkersRollout) bool {
		return !slices.ContainsFunc(shoot.Spec.Provider.Workers, func(worker corev1beta1.Worker) bool { return worker.Name == one.Name })
	})
	if len(*c.Pending) == 0 {
		*c.Pending = nil
	}
}

// rolledOut returns the pools of an operation that rolls out worker pools for rotations, and whether it is one.
func rolledOut(operation string) ([]string, bool) {
	name, pools, _ := strings.Cut(operation, "=")
	return strings.Split(pools, ","), name == constants.OperationRotateRolloutWorkers
}

// beginSSH starts the rotation of the SSH key pair of nodes, unless one is in progress.
func beginSSH(shoot *corev1beta1.Shoot, status *corev1beta1.ShootCredentialsRotation, at metav1.Time) {
	if len(shoot.Spec.Provider.Workers) == 0 {
		return
	}
	if status.SSHKeypair == nil {
		status.SSHKeypair = &corev1beta1.ShootSSHKeypairRotation{}
	}
	if of := status.SSHKeypair; !rotation.TimeOf(of.LastInitiationTime).After(rotation.TimeOf(of.LastCompletionTime)) {
		of.LastInitiationTime = &at
	}
}

// sshRotation returns the state of the SSH key pair. The previous key pair is accepted until the next rotation.
func sshRotation(of *corev1beta1.ShootSSHKeypairRotation) secrets.Rotation {
	return secrets.Rotation{Initiated: rotation.TimeOf(of.LastInitiationTime), Phase: corev1beta1.RotationPrepared, Distributed: true}
}

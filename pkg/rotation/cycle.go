// Package rotation contains what the flows of Shoots and Gardens share to rotate credentials: the phases, the encryption of resources in etcd with
// the rewrite of their objects, and the renewal of tokens. Which credentials an operation rotates is up to each flow.
package rotation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Credential is a kind of credentials that is rotated.
type Credential string

// The kinds of credentials, as used in the names of tasks. The rotation of observability credentials and of SSH key pairs has no phases.
const (
	Authorities         Credential = "certificate-authorities"
	AccountKey          Credential = "service-account-key"
	EncryptionKey       Credential = "etcd-encryption-key"
	WorkloadIdentityKey Credential = "workload-identity-key"
	Observability       Credential = "observability"
	SSHKeypair          Credential = "ssh-keypair"
)

// Wait is the name of the wait of an operation for a rotation that has not reached its next phase.
const Wait = "credentials-rotation"

// Cycle points to the part of a status for the rotation of one kind of credentials.
type Cycle struct {
	Credential                                   Credential
	Phase                                        *corev1beta1.CredentialsRotationPhase
	Initiated, Prepared, Completing, CompletedAt **metav1.Time
	// Pending are the worker pools that wait for their rollout; nil if nodes do not depend on the credentials.
	Pending *[]corev1beta1.PendingWorkersRollout
}

// OfAuthorities returns the rotation of certificate authorities.
func OfAuthorities(of *corev1beta1.CARotation) Cycle {
	return Cycle{
		Authorities, &of.Phase, &of.LastInitiationTime, &of.LastInitiationFinishedTime, &of.LastCompletionTriggeredTime, &of.LastCompletionTime,
		&of.PendingWorkersRollouts,
	}
}

// OfAccountKey returns the rotation of the key for tokens of ServiceAccounts.
func OfAccountKey(of *corev1beta1.ServiceAccountKeyRotation) Cycle {
	return Cycle{
		AccountKey, &of.Phase, &of.LastInitiationTime, &of.LastInitiationFinishedTime, &of.LastCompletionTriggeredTime, &of.LastCompletionTime,
		&of.PendingWorkersRollouts,
	}
}

// OfEncryptionKey returns the rotation of the key with which API servers encrypt objects in etcd.
func OfEncryptionKey(of *corev1beta1.ETCDEncryptionKeyRotation) Cycle {
	return Cycle{
		EncryptionKey, &of.Phase, &of.LastInitiationTime, &of.LastInitiationFinishedTime, &of.LastCompletionTriggeredTime, &of.LastCompletionTime, nil,
	}
}

// IsPreparing reports whether the new credentials are being distributed in addition to the old ones.
func (c Cycle) IsPreparing() bool {
	return *c.Phase == corev1beta1.RotationPreparing || *c.Phase == corev1beta1.RotationPreparingWithoutWorkersRollout
}

// IsOver reports whether only one set of credentials exists.
func (c Cycle) IsOver() bool { return *c.Phase == "" || *c.Phase == corev1beta1.RotationCompleted }

// Start starts a rotation unless one is in progress. In that case the operation was already handled, but its annotation not removed.
func (c Cycle) Start(now metav1.Time) bool {
	if !c.IsOver() {
		return false
	}
	*c.Phase, *c.Initiated, *c.Prepared, *c.Completing = corev1beta1.RotationPreparing, &now, nil, nil
	if c.Pending != nil {
		*c.Pending = nil
	}
	return true
}

// Complete starts the withdrawal of the old credentials if the new ones have been prepared.
func (c Cycle) Complete(now metav1.Time) {
	if *c.Phase == corev1beta1.RotationPrepared {
		*c.Phase, *c.Completing = corev1beta1.RotationCompleting, &now
	}
}

// Waiting returns the names of the pools that wait for their rollout.
func (c Cycle) Waiting() []string {
	var names []string
	if c.Pending != nil {
		for _, one := range *c.Pending {
			names = append(names, one.Name)
		}
	}
	return names
}

// Advance sets the next phase if nothing of the plan is unsettled, and reports whether it did. unsettled are the results of [flow.Unsettled] and
// the due tasks.
func (c Cycle) Advance(unsettled []string, now metav1.Time) bool {
	next, _ := secrets.Advance(*c.Phase, unsettled, c.Waiting())
	if next == *c.Phase {
		return false
	}
	*c.Phase = next
	switch next {
	case corev1beta1.RotationPrepared:
		*c.Prepared = &now
	case corev1beta1.RotationCompleted:
		*c.CompletedAt, *c.Prepared, *c.Completing = &now, nil, nil
	}
	return true
}

// Distribution returns the task that is done once all servers accept the new credentials. The new credentials are used only afterwards.
func (c Cycle) Distribution() flow.Task {
	return flow.Task{Name: "distribute-" + string(c.Credential), Value: c.Value()}
}

// Value identifies this rotation in tasks: when it began.
func (c Cycle) Value() string { return TimeOf(*c.Initiated).UTC().Format(time.RFC3339) }

// State returns the declared state of the rotation for the manager of Secrets. done reports whether a task was executed.
func (c Cycle) State(done func(flow.Task) bool) secrets.Rotation {
	return secrets.Rotation{Initiated: TimeOf(*c.Initiated), Phase: *c.Phase, Distributed: !c.IsPreparing() || done(c.Distribution())}
}

// AdvanceOnce completes a rotation without phases if nothing is unsettled, and reports whether it did.
func AdvanceOnce(initiated *metav1.Time, completed **metav1.Time, unsettled []string, now metav1.Time) bool {
	if len(unsettled) > 0 || !TimeOf(initiated).After(TimeOf(*completed)) {
		return false
	}
	*completed = &now
	return true
}

// TimeOf returns the time, or the zero time if it is nil.
func TimeOf(at *metav1.Time) time.Time { return ptr.Deref(at, metav1.Time{}).Time }

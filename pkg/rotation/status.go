package rotation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Status points to the fields of a status for the rotations that Shoots and Gardens have in common.
type Status struct {
	Authorities   **corev1beta1.CARotation
	AccountKey    **corev1beta1.ServiceAccountKeyRotation
	EncryptionKey **corev1beta1.ETCDEncryptionKeyRotation
	Observability **corev1beta1.ObservabilityRotation
}

// Cycles returns the rotations with phases.
func (s Status) Cycles() Cycles {
	var all Cycles
	if of := *s.Authorities; of != nil {
		all = append(all, OfAuthorities(of))
	}
	if of := *s.AccountKey; of != nil {
		all = append(all, OfAccountKey(of))
	}
	if of := *s.EncryptionKey; of != nil {
		all = append(all, OfEncryptionKey(of))
	}
	return all
}

// Cycle returns the rotation with phases of a kind of credentials. It adds one if there is none.
func (s Status) Cycle(kind Credential) Cycle {
	switch {
	case kind == Authorities && *s.Authorities == nil:
		*s.Authorities = &corev1beta1.CARotation{}
	case kind == AccountKey && *s.AccountKey == nil:
		*s.AccountKey = &corev1beta1.ServiceAccountKeyRotation{}
	case kind == EncryptionKey && *s.EncryptionKey == nil:
		*s.EncryptionKey = &corev1beta1.ETCDEncryptionKeyRotation{}
	}
	all := s.Cycles()
	return all[slices.IndexFunc(all, func(c Cycle) bool { return c.Credential == kind })]
}

// Begin starts the rotation of a kind of credentials for an operation, in a cluster with a version of Kubernetes. It reports whether one with
// phases has started: none does while one is in progress.
func (s Status) Begin(kind Credential, operation, kubernetes string, at metav1.Time) bool {
	if kind == Observability {
		if *s.Observability == nil {
			*s.Observability = &corev1beta1.ObservabilityRotation{}
		}
		(*s.Observability).LastInitiationTime = &at
		return false
	}
	if !s.Cycle(kind).Start(at) {
		return false
	}
	if kind == EncryptionKey {
		(*s.EncryptionKey).AutoCompleteAfterPrepared = CompletesByItself(operation, kubernetes)
	}
	return true
}

// CompleteKey starts the withdrawal of the old encryption key if that needs no operation of the user.
func (s Status) CompleteKey(kubernetes string, at metav1.Time) {
	if key := *s.EncryptionKey; key != nil && KeyCompletesItself(key, kubernetes) {
		OfEncryptionKey(key).Complete(at)
	}
}

// AdvanceObservability completes the rotation of observability credentials if nothing is unsettled, and reports whether it did.
func (s Status) AdvanceObservability(unsettled []string, at metav1.Time) bool {
	of := *s.Observability
	return of != nil && AdvanceOnce(of.LastInitiationTime, &of.LastCompletionTime, unsettled, at)
}

// Cycles are rotations with phases of different kinds of credentials.
type Cycles []Cycle

// Advance sets the next phases if nothing of the plan is unsettled, and reports whether it did.
func (all Cycles) Advance(unsettled []string, at metav1.Time) bool {
	moved := false
	for _, c := range all {
		moved = c.Advance(unsettled, at) || moved
	}
	return moved
}

// Prepares reports whether new credentials of a kind are being distributed.
func (all Cycles) Prepares(kind Credential) bool {
	return slices.ContainsFunc(all, func(c Cycle) bool { return c.Credential == kind && c.IsPreparing() })
}

// AuthoritiesChange reports whether clients and servers may have certificates of different authorities. In this case, clients wait until all
// replicas of their servers have changed: clients trust the new authority before servers use it, and the old one until none does.
func (all Cycles) AuthoritiesChange() bool {
	return slices.ContainsFunc(all, func(c Cycle) bool { return c.Credential == Authorities && !c.IsOver() })
}

// States returns the declared states for the manager of Secrets, by the names of configs. configs are those of each kind of credentials. done
// reports whether a task was executed.
func (all Cycles) States(configs map[Credential][]string, done func(flow.Task) bool) map[string]secrets.Rotation {
	states := map[string]secrets.Rotation{}
	for _, c := range all {
		for _, name := range configs[c.Credential] {
			states[name] = c.State(done)
		}
	}
	return states
}

// Distributions returns the tasks that are done once all servers accept the new credentials.
func (all Cycles) Distributions() []flow.Task {
	var tasks []flow.Task
	for _, c := range all {
		if c.IsPreparing() {
			tasks = append(tasks, c.Distribution())
		}
	}
	return tasks
}

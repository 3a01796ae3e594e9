package shoot

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// started are the credentials whose rotation an operation starts. Whether workers are rolled out makes no difference for a Shoot without.
var started = map[string][]rotation.Credential{
	constants.OperationRotateCredentialsStart: {
		rotation.Authorities, rotation.AccountKey, rotation.EncryptionKey, rotation.Observability, rotation.SSHKeypair,
	},
	constants.OperationRotateCredentialsStartWithoutWorkersRollout: {
		rotation.Authorities, rotation.AccountKey, rotation.EncryptionKey, rotation.Observability, rotation.SSHKeypair,
	},
	constants.OperationRotateCAStart:                                     {rotation.Authorities},
	constants.OperationRotateCAStartWithoutWorkersRollout:                {rotation.Authorities},
	constants.OperationRotateServiceAccountKeyStart:                      {rotation.AccountKey},
	constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout: {rotation.AccountKey},
	constants.OperationRotateETCDEncryptionKey:                           {rotation.EncryptionKey},
	constants.OperationRotateETCDEncryptionKeyStart:                      {rotation.EncryptionKey},
	constants.OperationRotateObservabilityCredentials:                    {rotation.Observability},
	constants.OperationRotateSSHKeypair:                                  {rotation.SSHKeypair},
}

// completed are the credentials whose rotation an operation completes.
var completed = map[string][]rotation.Credential{
	constants.OperationRotateCredentialsComplete:       {rotation.Authorities, rotation.AccountKey, rotation.EncryptionKey},
	constants.OperationRotateCAComplete:                {rotation.Authorities},
	constants.OperationRotateServiceAccountKeyComplete: {rotation.AccountKey},
	constants.OperationRotateETCDEncryptionKeyComplete: {rotation.EncryptionKey},
}

// statusOf points to the rotations that Gardens have too.
func statusOf(of *corev1beta1.ShootCredentialsRotation) rotation.Status {
	return rotation.Status{
		Authorities: &of.CertificateAuthorities, AccountKey: &of.ServiceAccountKey, EncryptionKey: &of.ETCDEncryptionKey,
		Observability: &of.Observability,
	}
}

// cycles returns the rotations with phases in a status.
func cycles(of *corev1beta1.ShootCredentialsRotation) rotation.Cycles {
	if of == nil {
		return nil
	}
	return statusOf(of).Cycles()
}

// operated returns the credentials in the status after the operations for which the Shoot is annotated, and after a
// declared change of the encryption provider. left are operations that concern other controllers. The API server of the
// garden has checked that the operations are allowed. Repeated calls return the same.
func operated(shoot *corev1beta1.Shoot, now time.Time) (credentials *corev1beta1.ShootCredentials, left []string) {
	credentials = shoot.Status.Credentials.DeepCopy()
	if credentials == nil {
		credentials = &corev1beta1.ShootCredentials{}
	}
	of := credentials.Rotation
	if of == nil {
		of = &corev1beta1.ShootCredentialsRotation{}
	}
	at := metav1.NewTime(now)
	// The rotation of the encryption key completes without a request if the Shoot is configured or new enough for it.
	statusOf(of).CompleteKey(shoot.Spec.Kubernetes.Version, at)
	for _, operation := range validation.SplitOperations(shoot.Annotations[constants.AnnotationGardenerOperation]) {
		begins, ends := started[operation], completed[operation]
		pools, rolls := rolledOut(operation)
		over := operation == constants.OperationForceInPlaceUpdate && shoot.Status.InPlaceUpdates == nil
		if len(begins)+len(ends) == 0 && !rolls && !over {
			left = append(left, operation)
		}
		for _, kind := range begins {
			begin(shoot, of, kind, operation, at)
		}
		for _, c := range cycles(of) {
			if slices.Contains(ends, c.Credential) {
				c.Complete(at)
			}
			if rolls {
				rollOut(c, pools)
			}
		}
	}
	for _, c := range cycles(of) {
		forgetPools(c, shoot)
	}
	if providerChanged(shoot) {
		begin(shoot, of, rotation.EncryptionKey, constants.OperationRotateETCDEncryptionKey, at)
	}
	if *of != (corev1beta1.ShootCredentialsRotation{}) {
		credentials.Rotation = of
	}
	if *credentials == (corev1beta1.ShootCredentials{}) {
		return nil, left
	}
	return credentials, left
}

// begin starts the rotation of one kind of credentials.
func begin(shoot *corev1beta1.Shoot, of *corev1beta1.ShootCredentialsRotation, kind rotation.Credential, operation string, at metav1.Time) {
	if kind == rotation.SSHKeypair {
		beginSSH(shoot, of, at)
		return
	}
	var before *metav1.Time
	for _, c := range cycles(of) {
		if c.Credential == kind {
			before = *c.Initiated
		}
	}
	if statusOf(of).Begin(kind, operation, shoot.Spec.Kubernetes.Version, at) && withoutRollout(operation) {
		deferRollout(statusOf(of).Cycle(kind), shoot, before)
	}
}

// providerChanged reports whether a Shoot that does not hibernate declares another encryption provider than the active
// one, which requires a new key.
func providerChanged(shoot *corev1beta1.Shoot) bool {
	credentials, server := shoot.Status.Credentials, shoot.Spec.Kubernetes.KubeAPIServer
	return credentials != nil && server != nil && !Hibernated(shoot) && rotation.ProviderChanges(credentials.EncryptionAtRest, server.EncryptionConfig)
}

// advanced returns the credentials in the status after an observation of the plan, and whether they changed. unsettled are the results of
// flow.Unsettled and the due tasks.
func advanced(credentials *corev1beta1.ShootCredentials, unsettled []string, now time.Time) (*corev1beta1.ShootCredentials, bool) {
	if credentials == nil || credentials.Rotation == nil {
		return credentials, false
	}
	credentials, at := credentials.DeepCopy(), metav1.NewTime(now)
	moved := cycles(credentials.Rotation).Advance(unsettled, at)
	moved = statusOf(credentials.Rotation).AdvanceObservability(unsettled, at) || moved
	if of := credentials.Rotation.SSHKeypair; of != nil {
		moved = rotation.AdvanceOnce(of.LastInitiationTime, &of.LastCompletionTime, unsettled, at) || moved
	}
	return credentials, moved
}

// rotation returns the rotations in the status, or nil if there are none.
func (in Inputs) rotation() *corev1beta1.ShootCredentialsRotation {
	if in.Shoot.Status.Credentials == nil {
		return nil
	}
	return in.Shoot.Status.Credentials.Rotation
}

// moves reports whether a rotation enters its next phase once the plan is rolled out.
func (in Inputs) moves() bool {
	_, moved := advanced(in.Shoot.Status.Credentials, nil, in.Now)
	return moved
}

// withdraws reports whether the old authorities are being withdrawn. Servers may still have certificates of them.
func (in Inputs) withdraws() bool {
	return slices.ContainsFunc(cycles(in.rotation()), func(c rotation.Cycle) bool {
		return c.Credential == rotation.Authorities && *c.Phase == corev1beta1.RotationCompleting
	})
}

// rotations returns the states of rotations according to the status and the ledger, by the names of configs.
func (in Inputs) rotations() map[string]secrets.Rotation {
	all := cycles(in.rotation()).States(map[rotation.Credential][]string{
		rotation.Authorities:   append([]string{kubeapiserver.SecretStaticTokens}, in.authorities()...),
		rotation.AccountKey:    {constants.SecretNameServiceAccountKey},
		rotation.EncryptionKey: {constants.SecretNameETCDEncryptionKey},
	}, in.done)
	if of := in.rotation(); of != nil && of.SSHKeypair != nil && in.hasWorkers() {
		all[constants.SecretNameSSHKeyPair] = sshRotation(of.SSHKeypair)
	}
	return all
}

// done reports whether the ledger contains a task.
func (in Inputs) done(task flow.Task) bool { return in.Ledger.Done(task) }

// allDone reports whether the ledger contains all tasks.
func (in Inputs) allDone(tasks []flow.Task) bool {
	return !slices.ContainsFunc(tasks, func(task flow.Task) bool { return !in.done(task) })
}

// tasks returns the tasks in addition to the bundles, in order, including those that are done. First, all servers must
// accept the new credentials of all rotations and be able to read newly encrypted resources. Only then does the plan use
// them, and the other tasks follow.
func (in Inputs) tasks() []flow.Task {
	tasks := in.distributions()
	if !in.allDone(tasks) || in.unknownSecrets() != "" {
		return tasks
	}
	if cycles(in.rotation()).Prepares(rotation.AccountKey) {
		tasks = append(tasks, flow.Task{Name: rotation.TaskRenewTokens, Value: in.Secrets[constants.SecretNameServiceAccountKey].Current.Name})
	}
	return append(tasks, in.encryption().Rewrites()...)
}

// distributions returns the tasks that are done as soon as all servers accept new credentials, or can read newly encrypted
// resources.
func (in Inputs) distributions() []flow.Task {
	return append(cycles(in.rotation()).Distributions(), in.encryption().Readables()...)
}

// due returns the tasks that are not done.
func (in Inputs) due() []flow.Task {
	return slices.DeleteFunc(in.tasks(), in.done)
}

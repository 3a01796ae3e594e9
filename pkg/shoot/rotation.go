package shoot

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// credential is a kind of credentials that is rotated.
type credential string

// The kinds of credentials, as used in the names of tasks. The rotation of observability credentials has no phases.
const (
	authoritiesRotated   credential = "certificate-authorities"
	accountKeyRotated    credential = "service-account-key"
	encryptionKeyRotated credential = "etcd-encryption-key"
	observabilityRotated credential = "observability"
	sshKeypairRotated    credential = "ssh-keypair"
)

// started are the credentials whose rotation an operation starts. Whether workers are rolled out makes no difference for a Shoot without.
var started = map[string][]credential{
	constants.OperationRotateCredentialsStart: {
		authoritiesRotated, accountKeyRotated, encryptionKeyRotated, observabilityRotated, sshKeypairRotated,
	},
	constants.OperationRotateCredentialsStartWithoutWorkersRollout: {
		authoritiesRotated, accountKeyRotated, encryptionKeyRotated, observabilityRotated, sshKeypairRotated,
	},
	constants.OperationRotateCAStart:                                     {authoritiesRotated},
	constants.OperationRotateCAStartWithoutWorkersRollout:                {authoritiesRotated},
	constants.OperationRotateServiceAccountKeyStart:                      {accountKeyRotated},
	constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout: {accountKeyRotated},
	constants.OperationRotateETCDEncryptionKey:                           {encryptionKeyRotated},
	constants.OperationRotateETCDEncryptionKeyStart:                      {encryptionKeyRotated},
	constants.OperationRotateObservabilityCredentials:                    {observabilityRotated},
	constants.OperationRotateSSHKeypair:                                  {sshKeypairRotated},
}

// completed are the credentials whose rotation an operation completes.
var completed = map[string][]credential{
	constants.OperationRotateCredentialsComplete:       {authoritiesRotated, accountKeyRotated, encryptionKeyRotated},
	constants.OperationRotateCAComplete:                {authoritiesRotated},
	constants.OperationRotateServiceAccountKeyComplete: {accountKeyRotated},
	constants.OperationRotateETCDEncryptionKeyComplete: {encryptionKeyRotated},
}

// cycle points to the part of the status for the rotation of one kind of credentials.
type cycle struct {
	credential                                   credential
	phase                                        *corev1beta1.CredentialsRotationPhase
	initiated, prepared, completing, completedAt **metav1.Time
	// pending are the worker pools that wait for their rollout; nil if nodes do not depend on the credentials.
	pending *[]corev1beta1.PendingWorkersRollout
}

// cycles returns the rotations with phases in a status.
func cycles(rotation *corev1beta1.ShootCredentialsRotation) []cycle {
	var all []cycle
	if rotation == nil {
		return nil
	}
	if of := rotation.CertificateAuthorities; of != nil {
		all = append(all, cycle{
			authoritiesRotated, &of.Phase,
			&of.LastInitiationTime, &of.LastInitiationFinishedTime, &of.LastCompletionTriggeredTime, &of.LastCompletionTime,
			&of.PendingWorkersRollouts,
		})
	}
	if of := rotation.ServiceAccountKey; of != nil {
		all = append(all, cycle{
			accountKeyRotated, &of.Phase,
			&of.LastInitiationTime, &of.LastInitiationFinishedTime, &of.LastCompletionTriggeredTime, &of.LastCompletionTime,
			&of.PendingWorkersRollouts,
		})
	}
	if of := rotation.ETCDEncryptionKey; of != nil {
		all = append(all, cycle{
			encryptionKeyRotated, &of.Phase,
			&of.LastInitiationTime, &of.LastInitiationFinishedTime, &of.LastCompletionTriggeredTime, &of.LastCompletionTime, nil,
		})
	}
	return all
}

// isPreparing reports whether the new credentials are being distributed in addition to the old ones.
func (c cycle) isPreparing() bool {
	return *c.phase == corev1beta1.RotationPreparing || *c.phase == corev1beta1.RotationPreparingWithoutWorkersRollout
}

// isOver reports whether only one set of credentials exists.
func (c cycle) isOver() bool { return *c.phase == "" || *c.phase == corev1beta1.RotationCompleted }

// start starts a rotation unless one is in progress. In that case the operation was already handled, but its annotation not removed.
func (c cycle) start(now metav1.Time) bool {
	if !c.isOver() {
		return false
	}
	*c.phase, *c.initiated, *c.prepared, *c.completing = corev1beta1.RotationPreparing, &now, nil, nil
	if c.pending != nil {
		*c.pending = nil
	}
	return true
}

// complete starts the withdrawal of the old credentials if the new ones have been prepared.
func (c cycle) complete(now metav1.Time) {
	if *c.phase == corev1beta1.RotationPrepared {
		*c.phase, *c.completing = corev1beta1.RotationCompleting, &now
	}
}

// advance sets the next phase if nothing of the plan is unsettled, and reports whether it did.
func (c cycle) advance(unsettled []string, now metav1.Time) bool {
	next, _ := secrets.Advance(*c.phase, unsettled, c.waiting())
	if next == *c.phase {
		return false
	}
	*c.phase = next
	switch next {
	case corev1beta1.RotationPrepared:
		*c.prepared = &now
	case corev1beta1.RotationCompleted:
		*c.completedAt, *c.prepared, *c.completing = &now, nil, nil
	}
	return true
}

// distribution returns the task that is done once all servers accept the new credentials. The new credentials are used only afterwards.
func (c cycle) distribution() flow.Task {
	return flow.Task{Name: "distribute-" + string(c.credential), Value: timeOf(*c.initiated).UTC().Format(time.RFC3339)}
}

// timeOf returns the time, or the zero time if it is nil.
func timeOf(at *metav1.Time) time.Time { return ptr.Deref(at, metav1.Time{}).Time }

// cycleOf returns the rotation of a kind of credentials. It adds one to the status if there is none.
func cycleOf(rotation *corev1beta1.ShootCredentialsRotation, kind credential) cycle {
	switch {
	case kind == authoritiesRotated && rotation.CertificateAuthorities == nil:
		rotation.CertificateAuthorities = &corev1beta1.CARotation{}
	case kind == accountKeyRotated && rotation.ServiceAccountKey == nil:
		rotation.ServiceAccountKey = &corev1beta1.ServiceAccountKeyRotation{}
	case kind == encryptionKeyRotated && rotation.ETCDEncryptionKey == nil:
		rotation.ETCDEncryptionKey = &corev1beta1.ETCDEncryptionKeyRotation{}
	}
	all := cycles(rotation)
	return all[slices.IndexFunc(all, func(c cycle) bool { return c.credential == kind })]
}

// operated returns the credentials in the status after the operations for which the Shoot is annotated, and after a
// declared change of the encryption provider. left are operations that concern other controllers. The API server of the
// garden has checked that the operations are allowed. Repeated calls return the same.
func operated(shoot *corev1beta1.Shoot, now time.Time) (credentials *corev1beta1.ShootCredentials, left []string) {
	credentials = shoot.Status.Credentials.DeepCopy()
	if credentials == nil {
		credentials = &corev1beta1.ShootCredentials{}
	}
	rotation := credentials.Rotation
	if rotation == nil {
		rotation = &corev1beta1.ShootCredentialsRotation{}
	}
	at := metav1.NewTime(now)
	// The rotation of the encryption key completes without a request if the Shoot is configured or new enough for it.
	if key := rotation.ETCDEncryptionKey; key != nil && completesItself(shoot, key) {
		cycleOf(rotation, encryptionKeyRotated).complete(at)
	}
	for _, operation := range validation.SplitOperations(shoot.Annotations[constants.AnnotationGardenerOperation]) {
		begins, ends := started[operation], completed[operation]
		pools, rolls := rolledOut(operation)
		if len(begins)+len(ends) == 0 && !rolls {
			left = append(left, operation)
		}
		for _, kind := range begins {
			begin(shoot, rotation, kind, operation, at)
		}
		for _, c := range cycles(rotation) {
			if slices.Contains(ends, c.credential) {
				c.complete(at)
			}
			if rolls {
				c.rollOut(pools)
			}
		}
	}
	for _, c := range cycles(rotation) {
		c.forgetPools(shoot)
	}
	if providerChanged(shoot) {
		begin(shoot, rotation, encryptionKeyRotated, constants.OperationRotateETCDEncryptionKey, at)
	}
	if *rotation != (corev1beta1.ShootCredentialsRotation{}) {
		credentials.Rotation = rotation
	}
	if *credentials == (corev1beta1.ShootCredentials{}) {
		return nil, left
	}
	return credentials, left
}

// begin starts the rotation of one kind of credentials.
func begin(shoot *corev1beta1.Shoot, rotation *corev1beta1.ShootCredentialsRotation, kind credential, operation string, at metav1.Time) {
	switch kind {
	case observabilityRotated:
		if rotation.Observability == nil {
			rotation.Observability = &corev1beta1.ObservabilityRotation{}
		}
		rotation.Observability.LastInitiationTime = &at
		return
	case sshKeypairRotated:
		beginSSH(shoot, rotation, at)
		return
	}
	c := cycleOf(rotation, kind)
	before := *c.initiated
	if !c.start(at) {
		return
	}
	if withoutRollout(operation) {
		c.deferRollout(shoot, before)
	}
	if kind != encryptionKeyRotated {
		return
	}
	// Users complete the rotation on older versions, unless they requested it in one step.
	rotation.ETCDEncryptionKey.AutoCompleteAfterPrepared = nil
	if operation == constants.OperationRotateETCDEncryptionKey || completesAlways(shoot) {
		rotation.ETCDEncryptionKey.AutoCompleteAfterPrepared = ptr.To(true)
	}
}

// completesItself reports whether the rotation of the encryption key completes without an operation of the user. Only the
// control plane uses the key.
func completesItself(shoot *corev1beta1.Shoot, key *corev1beta1.ETCDEncryptionKeyRotation) bool {
	return ptr.Deref(key.AutoCompleteAfterPrepared, false) || completesAlways(shoot)
}

// completesAlways reports whether the Kubernetes version of a Shoot no longer has an operation to complete the rotation
// of the encryption key.
func completesAlways(shoot *corev1beta1.Shoot) bool {
	parsed, err := version.ParseGeneric(shoot.Spec.Kubernetes.Version)
	return err == nil && parsed.AtLeast(version.MustParseGeneric("1.34"))
}

// providerChanged reports whether a Shoot that does not hibernate declares another encryption provider than the active
// one, which requires a new key.
func providerChanged(shoot *corev1beta1.Shoot) bool {
	credentials, server := shoot.Status.Credentials, shoot.Spec.Kubernetes.KubeAPIServer
	if credentials == nil || credentials.EncryptionAtRest == nil || server == nil || server.EncryptionConfig == nil || Hibernated(shoot) {
		return false
	}
	is, wanted := credentials.EncryptionAtRest.Provider.Type, ptr.Deref(server.EncryptionConfig.Provider.Type, "")
	return is != "" && wanted != "" && is != wanted
}

// advanced returns the credentials in the status after an observation of the plan, and whether they changed. unsettled are the results of
// flow.Unsettled and the due tasks.
func advanced(credentials *corev1beta1.ShootCredentials, unsettled []string, now time.Time) (*corev1beta1.ShootCredentials, bool) {
	if credentials == nil || credentials.Rotation == nil {
		return credentials, false
	}
	credentials, moved := credentials.DeepCopy(), false
	at := metav1.NewTime(now)
	for _, c := range cycles(credentials.Rotation) {
		moved = c.advance(unsettled, at) || moved
	}
	if of := credentials.Rotation.Observability; of != nil && len(unsettled) == 0 &&
		timeOf(of.LastInitiationTime).After(timeOf(of.LastCompletionTime)) {
		of.LastCompletionTime, moved = &at, true
	}
	if of := credentials.Rotation.SSHKeypair; of != nil && len(unsettled) == 0 && timeOf(of.LastInitiationTime).After(timeOf(of.LastCompletionTime)) {
		of.LastCompletionTime, moved = &at, true
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

// authoritiesChange reports whether clients and servers of the control plane may have certificates of different
// authorities. In this case, clients wait until all replicas of their servers have changed. Clients trust the new
// authority before servers use it, and the old one until none does.
func (in Inputs) authoritiesChange() bool {
	return slices.ContainsFunc(cycles(in.rotation()), func(c cycle) bool { return c.credential == authoritiesRotated && !c.isOver() })
}

// withdraws reports whether the old authorities are being withdrawn. Servers may still have certificates of them.
func (in Inputs) withdraws() bool {
	return slices.ContainsFunc(cycles(in.rotation()), func(c cycle) bool {
		return c.credential == authoritiesRotated && *c.phase == corev1beta1.RotationCompleting
	})
}

// rotations returns the states of rotations according to the status and the ledger, by the names of configs.
func (in Inputs) rotations() map[string]secrets.Rotation {
	all := map[string]secrets.Rotation{}
	configs := map[credential][]string{
		authoritiesRotated:   append([]string{kubeapiserver.SecretStaticTokens}, in.authorities()...),
		accountKeyRotated:    {constants.SecretNameServiceAccountKey},
		encryptionKeyRotated: {constants.SecretNameETCDEncryptionKey},
	}
	for _, c := range cycles(in.rotation()) {
		for _, name := range configs[c.credential] {
			all[name] = secrets.Rotation{
				Initiated: timeOf(*c.initiated), Phase: *c.phase, Distributed: !c.isPreparing() || in.done(c.distribution()),
			}
		}
	}
	if rotation := in.rotation(); rotation != nil && rotation.SSHKeypair != nil && in.hasWorkers() {
		all[constants.SecretNameSSHKeyPair] = sshRotation(rotation.SSHKeypair)
	}
	return all
}

// done reports whether the ledger contains a task.
func (in Inputs) done(task flow.Task) bool {
	return in.Ledger != nil && in.Ledger.Has(task.Name, task.Value)
}

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
	if slices.ContainsFunc(cycles(in.rotation()), func(c cycle) bool { return c.credential == accountKeyRotated && c.isPreparing() }) {
		tasks = append(tasks, flow.Task{Name: taskRenewTokens, Value: in.Secrets[constants.SecretNameServiceAccountKey].Current.Name})
	}
	return append(tasks, in.rewrites()...)
}

// distributions returns the tasks that are done as soon as all servers accept new credentials, or can read newly encrypted
// resources.
func (in Inputs) distributions() []flow.Task {
	var tasks []flow.Task
	for _, c := range cycles(in.rotation()) {
		if c.isPreparing() {
			tasks = append(tasks, c.distribution())
		}
	}
	return append(tasks, in.readables()...)
}

// due returns the tasks that are not done.
func (in Inputs) due() []flow.Task {
	return slices.DeleteFunc(in.tasks(), in.done)
}

package garden

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	corevalidation "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// withPhases are the credentials whose rotation has phases.
var withPhases = []rotation.Credential{rotation.Authorities, rotation.AccountKey, rotation.EncryptionKey, rotation.WorkloadIdentityKey}

// started are the credentials whose rotation an operation starts.
var started = map[string][]rotation.Credential{
	constants.OperationRotateCredentialsStart:         append(withPhases[:len(withPhases):len(withPhases)], rotation.Observability),
	constants.OperationRotateCAStart:                  {rotation.Authorities},
	constants.OperationRotateServiceAccountKeyStart:   {rotation.AccountKey},
	constants.OperationRotateETCDEncryptionKey:        {rotation.EncryptionKey},
	constants.OperationRotateETCDEncryptionKeyStart:   {rotation.EncryptionKey},
	constants.OperationRotateWorkloadIdentityKeyStart: {rotation.WorkloadIdentityKey},
	constants.OperationRotateObservabilityCredentials: {rotation.Observability},
	constants.OperationReconcile:                      {},
}

// completed are the credentials whose rotation an operation completes.
var completed = map[string][]rotation.Credential{
	constants.OperationRotateCredentialsComplete:         withPhases,
	constants.OperationRotateCAComplete:                  {rotation.Authorities},
	constants.OperationRotateServiceAccountKeyComplete:   {rotation.AccountKey},
	constants.OperationRotateETCDEncryptionKeyComplete:   {rotation.EncryptionKey},
	constants.OperationRotateWorkloadIdentityKeyComplete: {rotation.WorkloadIdentityKey},
}

// cycles returns the rotations with phases in a status.
func cycles(of *operatorv1alpha1.CredentialsRotation) []rotation.Cycle {
	var all []rotation.Cycle
	if of == nil {
		return nil
	}
	if of.CertificateAuthorities != nil {
		all = append(all, rotation.OfAuthorities(of.CertificateAuthorities))
	}
	if of.ServiceAccountKey != nil {
		all = append(all, rotation.OfAccountKey(of.ServiceAccountKey))
	}
	if of.ETCDEncryptionKey != nil {
		all = append(all, rotation.OfEncryptionKey(of.ETCDEncryptionKey))
	}
	if key := of.WorkloadIdentityKey; key != nil {
		all = append(all, rotation.Cycle{
			Credential: rotation.WorkloadIdentityKey, Phase: &key.Phase, Initiated: &key.LastInitiationTime, Prepared: &key.LastInitiationFinishedTime,
			Completing: &key.LastCompletionTriggeredTime, CompletedAt: &key.LastCompletionTime,
		})
	}
	return all
}

// cycleOf returns the rotation of a kind of credentials. It adds one to the status if there is none.
func cycleOf(of *operatorv1alpha1.CredentialsRotation, kind rotation.Credential) rotation.Cycle {
	switch {
	case kind == rotation.Authorities && of.CertificateAuthorities == nil:
		of.CertificateAuthorities = &corev1beta1.CARotation{}
	case kind == rotation.AccountKey && of.ServiceAccountKey == nil:
		of.ServiceAccountKey = &corev1beta1.ServiceAccountKeyRotation{}
	case kind == rotation.EncryptionKey && of.ETCDEncryptionKey == nil:
		of.ETCDEncryptionKey = &corev1beta1.ETCDEncryptionKeyRotation{}
	case kind == rotation.WorkloadIdentityKey && of.WorkloadIdentityKey == nil:
		of.WorkloadIdentityKey = &operatorv1alpha1.WorkloadIdentityKeyRotation{}
	}
	all := cycles(of)
	return all[slices.IndexFunc(all, func(c rotation.Cycle) bool { return c.Credential == kind })]
}

// operated returns the credentials in the status after the operations for which the Garden is annotated, and after a declared change of the
// encryption provider. left are operations that this flow does not know. The webhook has checked that the operations are allowed. Repeated calls
// return the same.
func operated(garden *operatorv1alpha1.Garden, now time.Time) (credentials *operatorv1alpha1.Credentials, left []string) {
	credentials = garden.Status.Credentials.DeepCopy()
	if credentials == nil {
		credentials = &operatorv1alpha1.Credentials{}
	}
	of := credentials.Rotation
	if of == nil {
		of = &operatorv1alpha1.CredentialsRotation{}
	}
	at, version := metav1.NewTime(now), garden.Spec.VirtualCluster.Kubernetes.Version
	if key := of.ETCDEncryptionKey; key != nil && rotation.KeyCompletesItself(key, version) {
		cycleOf(of, rotation.EncryptionKey).Complete(at)
	}
	for _, operation := range corevalidation.SplitOperations(garden.Annotations[constants.AnnotationGardenerOperation]) {
		begins, begun := started[operation]
		ends, ended := completed[operation]
		if !begun && !ended {
			left = append(left, operation)
		}
		for _, kind := range begins {
			begin(of, kind, operation, version, at)
		}
		for _, c := range cycles(of) {
			if slices.Contains(ends, c.Credential) {
				c.Complete(at)
			}
		}
	}
	if providerChanged(garden) {
		begin(of, rotation.EncryptionKey, constants.OperationRotateETCDEncryptionKey, version, at)
	}
	if *of != (operatorv1alpha1.CredentialsRotation{}) {
		credentials.Rotation = of
	}
	if *credentials == (operatorv1alpha1.Credentials{}) {
		return nil, left
	}
	return credentials, left
}

// begin starts the rotation of one kind of credentials.
func begin(of *operatorv1alpha1.CredentialsRotation, kind rotation.Credential, operation, version string, at metav1.Time) {
	if kind == rotation.Observability {
		if of.Observability == nil {
			of.Observability = &corev1beta1.ObservabilityRotation{}
		}
		of.Observability.LastInitiationTime = &at
		return
	}
	if !cycleOf(of, kind).Start(at) || kind != rotation.EncryptionKey {
		return
	}
	of.ETCDEncryptionKey.AutoCompleteAfterPrepared = rotation.CompletesByItself(operation, version)
}

// providerChanged reports whether a Garden declares another encryption provider than the active one, which requires new keys.
func providerChanged(garden *operatorv1alpha1.Garden) bool {
	credentials, server := garden.Status.Credentials, garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer
	if credentials == nil || credentials.EncryptionAtRest == nil || server == nil || server.EncryptionConfig == nil {
		return false
	}
	return rotation.ProviderChanges(credentials.EncryptionAtRest, server.EncryptionConfig)
}

// advanced returns the credentials in the status after an observation of the plan, and whether they changed. unsettled are the results of
// [flow.Unsettled] and the due tasks.
func advanced(credentials *operatorv1alpha1.Credentials, unsettled []string, now time.Time) (*operatorv1alpha1.Credentials, bool) {
	if credentials == nil || credentials.Rotation == nil {
		return credentials, false
	}
	credentials, moved := credentials.DeepCopy(), false
	at := metav1.NewTime(now)
	for _, c := range cycles(credentials.Rotation) {
		moved = c.Advance(unsettled, at) || moved
	}
	if of := credentials.Rotation.Observability; of != nil {
		moved = rotation.AdvanceOnce(of.LastInitiationTime, &of.LastCompletionTime, unsettled, at) || moved
	}
	return credentials, moved
}

// rotating returns the rotations with phases in the status.
func (in Inputs) rotating() []rotation.Cycle {
	if in.Garden.Status.Credentials == nil {
		return nil
	}
	return cycles(in.Garden.Status.Credentials.Rotation)
}

// moves reports whether a rotation enters its next phase once the plan is rolled out.
func (in Inputs) moves() bool {
	_, moved := advanced(in.Garden.Status.Credentials, nil, in.Now)
	return moved
}

// prepares reports whether new credentials of a kind are being distributed.
func (in Inputs) prepares(kind rotation.Credential) bool {
	return slices.ContainsFunc(in.rotating(), func(c rotation.Cycle) bool { return c.Credential == kind && c.IsPreparing() })
}

// ready is a dependency on servers. While authorities change, clients wait until all replicas of their servers are rolled out: clients trust the
// new authority before servers use it, and the old one until none does.
func (in Inputs) ready(names ...string) table.Need {
	if slices.ContainsFunc(in.rotating(), func(c rotation.Cycle) bool { return c.Credential == rotation.Authorities && !c.IsOver() }) {
		return table.RolledOut(names...)
	}
	return table.Healthy(names...)
}

// rotations returns the states of rotations according to the status and the ledger, by the names of configs.
func (in Inputs) rotations() map[string]secrets.Rotation {
	all := map[string]secrets.Rotation{}
	configs := map[rotation.Credential][]string{
		rotation.Authorities:         append([]string{kubeapiserver.SecretStaticTokens}, authorities()...),
		rotation.AccountKey:          {constants.SecretNameServiceAccountKey},
		rotation.EncryptionKey:       {constants.SecretNameETCDEncryptionKey, constants.SecretNameGardenerETCDEncryptionKey},
		rotation.WorkloadIdentityKey: {constants.SecretNameWorkloadIdentitySigningKey},
	}
	for _, c := range in.rotating() {
		for _, name := range configs[c.Credential] {
			all[name] = c.State(in.done)
		}
	}
	return all
}

// wantedSecrets returns the Secrets that the manager of Secrets maintains.
func (in Inputs) wantedSecrets() secrets.Wanted {
	return secrets.Wanted{Configs: in.secretConfigs(), Rotations: in.rotations()}
}

// done reports whether the ledger contains a task.
func (in Inputs) done(task flow.Task) bool {
	return in.Ledger != nil && in.Ledger.Has(task.Name, task.Value)
}

// tasks returns the tasks in addition to the bundles, in order, including those that are done. First, all servers must accept the new credentials of
// all rotations and be able to read newly encrypted resources. Only then does the plan use them. The programs of the garden get new tokens, the
// Seeds are annotated to renew what they have, and objects are rewritten.
func (in Inputs) tasks() []flow.Task {
	tasks := in.distributions()
	if in.unknownSecrets() != "" || slices.ContainsFunc(tasks, func(task flow.Task) bool { return !in.done(task) }) {
		return tasks
	}
	if in.prepares(rotation.AccountKey) {
		tasks = append(tasks, flow.Task{Name: rotation.TaskRenewTokens, Value: in.Secrets[constants.SecretNameServiceAccountKey].Current.Name})
	}
	tasks = append(tasks, in.orders()...)
	for _, encryption := range []rotation.Encryption{in.encryption(), in.gardenerEncryption()} {
		if encryption.Reported || encryption.Rotated { // a new garden has no objects
			tasks = append(tasks, encryption.Rewrites()...)
		}
	}
	return tasks
}

// distributions returns the tasks that are done as soon as all servers accept new credentials, or can read newly encrypted resources.
func (in Inputs) distributions() []flow.Task {
	var tasks []flow.Task
	for _, c := range in.rotating() {
		if c.IsPreparing() {
			tasks = append(tasks, c.Distribution())
		}
	}
	return slices.Concat(tasks, in.encryption().Readables(), in.gardenerEncryption().Readables())
}

// due returns the tasks that are not done.
func (in Inputs) due() []flow.Task { return slices.DeleteFunc(in.tasks(), in.done) }

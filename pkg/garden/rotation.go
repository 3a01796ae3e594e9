package garden

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// statusOf points to the rotations that Shoots have too.
func statusOf(of *operatorv1alpha1.CredentialsRotation) rotation.Status {
	return rotation.Status{
		Authorities: &of.CertificateAuthorities, AccountKey: &of.ServiceAccountKey, EncryptionKey: &of.ETCDEncryptionKey,
		Observability: &of.Observability,
	}
}

// cycles returns the rotations with phases in a status.
func cycles(of *operatorv1alpha1.CredentialsRotation) rotation.Cycles {
	if of == nil {
		return nil
	}
	all := statusOf(of).Cycles()
	if of.WorkloadIdentityKey != nil {
		all = append(all, ofWorkloadIdentityKey(of.WorkloadIdentityKey))
	}
	return all
}

func ofWorkloadIdentityKey(key *operatorv1alpha1.WorkloadIdentityKeyRotation) rotation.Cycle {
	return rotation.Cycle{
		Credential: rotation.WorkloadIdentityKey, Phase: &key.Phase, Initiated: &key.LastInitiationTime, Prepared: &key.LastInitiationFinishedTime,
		Completing: &key.LastCompletionTriggeredTime, CompletedAt: &key.LastCompletionTime,
	}
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
	statusOf(of).CompleteKey(version, at)
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
	if kind != rotation.WorkloadIdentityKey {
		statusOf(of).Begin(kind, operation, version, at)
		return
	}
	if of.WorkloadIdentityKey == nil {
		of.WorkloadIdentityKey = &operatorv1alpha1.WorkloadIdentityKeyRotation{}
	}
	ofWorkloadIdentityKey(of.WorkloadIdentityKey).Start(at)
}

// providerChanged reports whether a Garden declares another encryption provider than the active one, which requires new keys.
func providerChanged(garden *operatorv1alpha1.Garden) bool {
	credentials, server := garden.Status.Credentials, garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer
	return credentials != nil && server != nil && rotation.ProviderChanges(credentials.EncryptionAtRest, server.EncryptionConfig)
}

// advanced returns the credentials in the status after an observation of the plan, and whether they changed. unsettled are the results of
// [flow.Unsettled] and the due tasks.
func advanced(credentials *operatorv1alpha1.Credentials, unsettled []string, now time.Time) (*operatorv1alpha1.Credentials, bool) {
	if credentials == nil || credentials.Rotation == nil {
		return credentials, false
	}
	credentials, at := credentials.DeepCopy(), metav1.NewTime(now)
	moved := cycles(credentials.Rotation).Advance(unsettled, at)
	moved = statusOf(credentials.Rotation).AdvanceObservability(unsettled, at) || moved
	return credentials, moved
}

// rotating returns the rotations with phases in the status.
func (in Inputs) rotating() rotation.Cycles {
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

// ready is a dependency on servers. While authorities change, clients wait until all replicas of their servers are rolled out.
func (in Inputs) ready(names ...string) table.Need {
	if in.rotating().AuthoritiesChange() {
		return table.RolledOut(names...)
	}
	return table.Healthy(names...)
}

// rotations returns the states of rotations according to the status and the ledger, by the names of configs.
func (in Inputs) rotations() map[string]secrets.Rotation {
	return in.rotating().States(map[rotation.Credential][]string{
		rotation.Authorities:         append([]string{kubeapiserver.SecretStaticTokens}, authorities()...),
		rotation.AccountKey:          {constants.SecretNameServiceAccountKey},
		rotation.EncryptionKey:       {constants.SecretNameETCDEncryptionKey, constants.SecretNameGardenerETCDEncryptionKey},
		rotation.WorkloadIdentityKey: {constants.SecretNameWorkloadIdentitySigningKey},
	}, in.done)
}

// wantedSecrets returns the Secrets that the manager of Secrets maintains.
func (in Inputs) wantedSecrets() secrets.Wanted {
	return secrets.Wanted{Configs: in.secretConfigs(), Rotations: in.rotations()}
}

// done reports whether the ledger contains a task.
func (in Inputs) done(task flow.Task) bool { return in.Ledger.Done(task) }

// tasks returns the tasks in addition to the bundles, in order, including those that are done. First, all servers must accept the new credentials of
// all rotations and be able to read newly encrypted resources. Only then does the plan use them. The programs of the garden get new tokens, the
// Seeds are annotated to renew what they have, and objects are rewritten.
func (in Inputs) tasks() []flow.Task {
	tasks := in.distributions()
	if in.unknownSecrets() != "" || slices.ContainsFunc(tasks, func(task flow.Task) bool { return !in.done(task) }) {
		return tasks
	}
	if in.rotating().Prepares(rotation.AccountKey) {
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
	return slices.Concat(in.rotating().Distributions(), in.encryption().Readables(), in.gardenerEncryption().Readables())
}

// due returns the tasks that are not done.
func (in Inputs) due() []flow.Task { return slices.DeleteFunc(in.tasks(), in.done) }

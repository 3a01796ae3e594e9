package constants

// Values of the annotation gardener.cloud/operation.
const (
	// OperationReconcile requests a reconciliation.
	OperationReconcile = "reconcile"
	// OperationRetry requests another attempt on a failed Shoot.
	OperationRetry = "retry"
	// OperationMaintain requests maintenance of a Shoot now.
	OperationMaintain = "maintain"
	// OperationMigrate requests the preparation of a move to another Seed.
	OperationMigrate = "migrate"
	// OperationRestore requests a restoration after a move to another Seed.
	OperationRestore = "restore"
	// OperationWaitForState keeps an extension from acting until the state is written.
	OperationWaitForState = "wait-for-state"
	// OperationKeepalive extends the life of a Bastion by an hour.
	OperationKeepalive = "keepalive"
	// OperationRenewKubeconfig requests a new client certificate of a gardenlet.
	OperationRenewKubeconfig = "renew-kubeconfig"
	// OperationForceRedeploy asks the operator to deploy a gardenlet again.
	OperationForceRedeploy = "force-redeploy"
	// OperationRenew requests a new client certificate, on the Secret with the kubeconfig of a gardenlet.
	OperationRenew = "renew"
	// OperationRenewGardenAccessSecrets requests new tokens for the garden in a Seed.
	OperationRenewGardenAccessSecrets = "renew-garden-access-secrets"
	// OperationRenewWorkloadIdentityTokens requests new tokens of WorkloadIdentities in a Seed.
	OperationRenewWorkloadIdentityTokens = "renew-workload-identity-tokens"
	// OperationRotateCredentialsStart starts the rotation of all credentials.
	OperationRotateCredentialsStart = "rotate-credentials-start"
	// OperationRotateCredentialsStartWithoutWorkersRollout starts the rotation of all credentials and leaves worker
	// pools as they are.
	OperationRotateCredentialsStartWithoutWorkersRollout = "rotate-credentials-start-without-workers-rollout"
	// OperationRotateCredentialsComplete completes the rotation of all credentials.
	OperationRotateCredentialsComplete = "rotate-credentials-complete"
	// OperationRotateCAStart starts the rotation of certificate authorities.
	OperationRotateCAStart = "rotate-ca-start"
	// OperationRotateCAStartWithoutWorkersRollout starts the rotation of certificate authorities and leaves worker pools
	// as they are.
	OperationRotateCAStartWithoutWorkersRollout = "rotate-ca-start-without-workers-rollout"
	// OperationRotateCAComplete completes the rotation of certificate authorities.
	OperationRotateCAComplete = "rotate-ca-complete"
	// OperationRotateServiceAccountKeyStart starts the rotation of the key for tokens of service accounts.
	OperationRotateServiceAccountKeyStart = "rotate-serviceaccount-key-start"
	// OperationRotateServiceAccountKeyStartWithoutWorkersRollout starts that rotation and keeps worker pools unchanged.
	OperationRotateServiceAccountKeyStartWithoutWorkersRollout = "rotate-serviceaccount-key-start-without-workers-rollout"
	// OperationRotateServiceAccountKeyComplete completes the rotation of the key for tokens of service accounts.
	OperationRotateServiceAccountKeyComplete = "rotate-serviceaccount-key-complete"
	// OperationRotateETCDEncryptionKey rotates the encryption key of etcd in one step.
	OperationRotateETCDEncryptionKey = "rotate-etcd-encryption-key"
	// OperationRotateETCDEncryptionKeyStart starts that rotation. Only before Kubernetes 1.34.
	OperationRotateETCDEncryptionKeyStart = "rotate-etcd-encryption-key-start"
	// OperationRotateETCDEncryptionKeyComplete completes that rotation. Only before Kubernetes 1.34.
	OperationRotateETCDEncryptionKeyComplete = "rotate-etcd-encryption-key-complete"
	// OperationRotateObservabilityCredentials rotates the observability passwords.
	OperationRotateObservabilityCredentials = "rotate-observability-credentials"
	// OperationRotateSSHKeypair rotates the SSH key pair of nodes.
	OperationRotateSSHKeypair = "rotate-ssh-keypair"
	// OperationRotateWorkloadIdentityKeyStart starts the rotation of the key for tokens of WorkloadIdentities.
	OperationRotateWorkloadIdentityKeyStart = "rotate-workload-identity-key-start"
	// OperationRotateWorkloadIdentityKeyComplete completes that rotation.
	OperationRotateWorkloadIdentityKeyComplete = "rotate-workload-identity-key-complete"
	// OperationRotateRolloutWorkers rolls out the worker pools that follow after an equals sign, for a rotation.
	OperationRotateRolloutWorkers = "rotate-rollout-workers"
	// OperationRolloutWorkers rolls out the worker pools that follow after an equals sign. A * stands for all.
	OperationRolloutWorkers = "rollout-workers"
	// OperationForceInPlaceUpdate allows changes of worker pools with pending in-place updates.
	OperationForceInPlaceUpdate = "force-in-place-update"
)

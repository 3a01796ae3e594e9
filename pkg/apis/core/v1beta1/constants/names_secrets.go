package constants

// Names of Secrets, ConfigMaps and InternalSecrets.
const (
	// SuffixCACluster is the suffix of the ConfigMap with the authority of a Shoot's API server.
	SuffixCACluster = ".ca-cluster"
	// SuffixCAKubelet is the suffix of the ConfigMap with the authority of a Shoot's kubelets.
	SuffixCAKubelet = ".ca-kubelet"
	// SuffixCAClient is the suffix of the InternalSecret with the authority of a Shoot's clients.
	SuffixCAClient = ".ca-client"
	// SuffixSSHKeypair is the suffix of the Secret with the SSH key pair of a Shoot.
	SuffixSSHKeypair = ".ssh-keypair"
	// SuffixSSHKeypairOld is the suffix of the Secret with the previous SSH key pair.
	SuffixSSHKeypairOld = ".ssh-keypair.old"
	// SuffixMonitoring is the suffix of the Secret with the observability password of a Shoot.
	SuffixMonitoring = ".monitoring"
	// KeyCACert is the key of an authority's certificate.
	KeyCACert = "ca.crt"
	// KeyCAKey is the key of an authority's private key.
	KeyCAKey = "ca.key"
	// SecretNameCACluster is the name of the Secret with the authority of a control plane.
	SecretNameCACluster = "ca"
	// SecretNameCAClient is the name of the Secret with the authority of clients.
	SecretNameCAClient = "ca-client"
	// SecretNameCAETCD is the name of the Secret with the authority of etcd.
	SecretNameCAETCD = "ca-etcd"
	// SecretNameCAETCDPeer is the name of the Secret with the authority of the members of etcd.
	SecretNameCAETCDPeer = "ca-etcd-peer"
	// SecretNameCAFrontProxy is the name of the Secret with the authority of the aggregation layer.
	SecretNameCAFrontProxy = "ca-front-proxy"
	// SecretNameCAKubelet is the name of the Secret with the authority of kubelets.
	SecretNameCAKubelet = "ca-kubelet"
	// SecretNameCAMetricsServer is the name of the Secret with the authority of the metrics server.
	SecretNameCAMetricsServer = "ca-metrics-server"
	// SecretNameCAVPN is the name of the Secret with the authority of the VPN.
	SecretNameCAVPN = "ca-vpn"
	// SecretNameCASeed is the name of the Secret with the authority of a Seed.
	SecretNameCASeed = "ca-seed"
	// SecretNameCAGardenRuntime is the name of the Secret with the authority of the runtime cluster.
	SecretNameCAGardenRuntime = "ca-garden-runtime"
	// SecretNameCAGardener is the name of the Secret with the authority of the garden's components.
	SecretNameCAGardener = "ca-gardener"
	// SecretNameServiceAccountKey is the name of the Secret with the key for tokens of service accounts.
	SecretNameServiceAccountKey = "service-account-key"
	// SecretNameSSHKeyPair is the name of the Secret with the SSH key pair.
	SecretNameSSHKeyPair = "ssh-keypair"
	// SecretNameETCDEncryptionKey is the name of the Secret with the encryption key of etcd.
	SecretNameETCDEncryptionKey = "kube-apiserver-etcd-encryption-key"
	// PrefixSecretETCDEncryptionConfiguration is the prefix of the Secrets with the configuration of that encryption.
	PrefixSecretETCDEncryptionConfiguration = "kube-apiserver-etcd-encryption-configuration"
	// SecretNameGardenerETCDEncryptionKey is the name of the Secret with the encryption key of the garden's kinds.
	SecretNameGardenerETCDEncryptionKey = "gardener-apiserver-etcd-encryption-key"
	// SecretNameWorkloadIdentitySigningKey is the name of the Secret with the key for tokens of WorkloadIdentities.
	SecretNameWorkloadIdentitySigningKey = "gardener-apiserver-workload-identity-signing-key"
	// SecretNameObservabilityIngress is the name of the Secret with the observability password of operators.
	SecretNameObservabilityIngress = "observability-ingress"
	// SecretNameObservabilityIngressUsers is the name of the Secret with the observability password of users.
	SecretNameObservabilityIngressUsers = "observability-ingress-users"
	// SecretNameGenericTokenKubeconfig is the name of the Secret with the kubeconfig that components share.
	SecretNameGenericTokenKubeconfig = "generic-token-kubeconfig"
	// SecretNameGenericGardenKubeconfig is the name of the Secret with the kubeconfig for the garden that components
	// share.
	SecretNameGenericGardenKubeconfig = "generic-garden-kubeconfig"
	// SecretNameGardener is the name of the Secret with the kubeconfig for administration from outside of the Seed.
	SecretNameGardener = "gardener"
	// SecretNameGardenerInternal is the name of the Secret with the kubeconfig for administration from within the Seed.
	SecretNameGardenerInternal = "gardener-internal"
	// SecretNameCloudProvider is the name of the Secret with the infrastructure credentials.
	SecretNameCloudProvider = "cloudprovider"
	// SecretNameETCDBackup is the name of the Secret with the credentials for backups.
	SecretNameETCDBackup = "etcd-backup"
	// KeyBackupBucketName is the key of the bucket's name in that Secret.
	KeyBackupBucketName = "bucketName"
	// PrefixGeneratedBackupBucketSecret is the prefix of the Secrets that extensions generate for buckets.
	PrefixGeneratedBackupBucketSecret = "generated-bucket-"
	// PrefixSourceBackupEntry is the prefix of the BackupEntry from which backups are copied.
	PrefixSourceBackupEntry = "source-"
	// PrefixShootAccess is the prefix of the Secrets with tokens for a Shoot.
	PrefixShootAccess = "shoot-access-"
	// PrefixGardenAccess is the prefix of the Secrets with tokens for the garden.
	PrefixGardenAccess = "garden-access-"
	// PrefixReference is the prefix of copies of objects that a Shoot refers to.
	PrefixReference = "ref-"
	// PrefixWorkloadIdentityReference is the prefix of the Secrets with tokens of WorkloadIdentities that a Shoot refers
	// to.
	PrefixWorkloadIdentityReference = "workload-identity-ref-"
	// PrefixBootstrapServiceAccount is the prefix of the service accounts of new gardenlets.
	PrefixBootstrapServiceAccount = "gardenlet-bootstrap-"
	// PrefixVirtualGarden is the prefix of the components of the garden's control plane.
	PrefixVirtualGarden = "virtual-garden-"
)

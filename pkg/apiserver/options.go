package apiserver

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// The bounds of the flags, as documented for Gardener's API server.
const (
	minKubeconfigExpiration  = time.Hour
	minRotationInterval      = 24 * time.Hour
	minTokenExpiration       = 10 * time.Minute
	maxExpiration            = math.MaxUint32 * time.Second
	defaultKubeconfigExpires = 24 * time.Hour
	defaultRotationInterval  = 90 * 24 * time.Hour
	defaultTokenMinExpires   = time.Hour
	defaultTokenMaxExpires   = 48 * time.Hour

	// etcdPrefix separates the objects from those of kube-apiserver in the same etcd.
	etcdPrefix = "/registry-gardener"
)

// Options are the options of the API server.
type Options struct {
	Recommended *genericoptions.RecommendedOptions
	ServerRun   *genericoptions.ServerRunOptions

	// ClusterIdentity is the identity of the garden cluster. It is required.
	ClusterIdentity string
	// AdminKubeconfigMaxExpiration and ViewerKubeconfigMaxExpiration limit the validity of the credentials that
	// shoots/adminkubeconfig and shoots/viewerkubeconfig issue.
	AdminKubeconfigMaxExpiration, ViewerKubeconfigMaxExpiration time.Duration
	// CredentialsRotationInterval is the age of a shoot's credentials after which clients get a warning.
	CredentialsRotationInterval time.Duration
	// WorkloadIdentity are the settings of workloadidentities/token.
	WorkloadIdentity WorkloadIdentityOptions

	scheme *runtime.Scheme
	codecs serializer.CodecFactory
	// stored are the storages for the informers of the server. They are known before the informers start.
	stored storages
}

// WorkloadIdentityOptions are the settings of workloadidentities/token.
type WorkloadIdentityOptions struct {
	// Issuer is the https URL in the claim iss. If Issuer and SigningKeyFile are empty, no tokens are issued.
	Issuer string
	// MinExpiration and MaxExpiration limit the validity of tokens.
	MinExpiration, MaxExpiration time.Duration
	// SigningKeyFile is the path of an RSA or ECDSA private key in PEM.
	SigningKeyFile string
}

// NewOptions returns the defaults. It fails if the API types contradict each other.
func NewOptions() (*Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("set up the API types: %w", err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	options := &Options{
		scheme: scheme, codecs: codecs, stored: storages{},
		Recommended:                   newRecommendedOptions(scheme, codecs),
		ServerRun:                     genericoptions.NewServerRunOptions(),
		AdminKubeconfigMaxExpiration:  defaultKubeconfigExpires,
		ViewerKubeconfigMaxExpiration: defaultKubeconfigExpires,
		CredentialsRotationInterval:   defaultRotationInterval,
		WorkloadIdentity:              WorkloadIdentityOptions{MinExpiration: defaultTokenMinExpires, MaxExpiration: defaultTokenMaxExpires},
	}
	registerAdmission(options.Recommended, options.stored)
	return options, nil
}

// AddFlags adds all flags of the API server.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Recommended.AddFlags(flags)
	o.ServerRun.AddUniversalFlags(flags)
	flags.StringVar(&o.ClusterIdentity, "cluster-identity", o.ClusterIdentity, "Identity of the garden cluster. Required.")
	flags.DurationVar(&o.AdminKubeconfigMaxExpiration, "shoot-admin-kubeconfig-max-expiration", o.AdminKubeconfigMaxExpiration,
		"Longest validity of a kubeconfig of shoots/adminkubeconfig. Requests for a longer one are capped.")
	flags.DurationVar(&o.ViewerKubeconfigMaxExpiration, "shoot-viewer-kubeconfig-max-expiration", o.ViewerKubeconfigMaxExpiration,
		"Longest validity of a kubeconfig of shoots/viewerkubeconfig. Requests for a longer one are capped.")
	flags.DurationVar(&o.CredentialsRotationInterval, "shoot-credentials-rotation-interval", o.CredentialsRotationInterval,
		"Age of a shoot's credentials after which clients get a warning.")
	flags.StringVar(&o.WorkloadIdentity.Issuer, "workload-identity-token-issuer", o.WorkloadIdentity.Issuer,
		"https URL in the claim iss of workload identity tokens.")
	flags.DurationVar(&o.WorkloadIdentity.MinExpiration, "workload-identity-token-min-expiration", o.WorkloadIdentity.MinExpiration,
		"Shortest validity of a workload identity token. Requests for a shorter one are raised.")
	flags.DurationVar(&o.WorkloadIdentity.MaxExpiration, "workload-identity-token-max-expiration", o.WorkloadIdentity.MaxExpiration,
		"Longest validity of a workload identity token. Requests for a longer one are capped.")
	flags.StringVar(&o.WorkloadIdentity.SigningKeyFile, "workload-identity-signing-key-file", o.WorkloadIdentity.SigningKeyFile,
		"File with the RSA or ECDSA private key that signs workload identity tokens, in PEM.")
}

// Validate returns the errors of all flags.
func (o *Options) Validate() error {
	errs := append(o.Recommended.Validate(), o.ServerRun.Validate()...)
	if o.ClusterIdentity == "" {
		errs = append(errs, errors.New("--cluster-identity is required"))
	}
	if pair := o.Recommended.SecureServing.ServerCert.CertKey; pair.CertFile == "" || pair.KeyFile == "" {
		// The server would issue a different self-signed certificate at each start, which an APIService cannot verify.
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file are required: the serving certificate and its key, in PEM"))
	}
	within := func(flag string, value, least time.Duration) {
		if value < least || value > maxExpiration {
			errs = append(errs, fmt.Errorf("--%s is %s, which is not between %s and %s", flag, value, least, maxExpiration))
		}
	}
	within("shoot-admin-kubeconfig-max-expiration", o.AdminKubeconfigMaxExpiration, minKubeconfigExpiration)
	within("shoot-viewer-kubeconfig-max-expiration", o.ViewerKubeconfigMaxExpiration, minKubeconfigExpiration)
	within("shoot-credentials-rotation-interval", o.CredentialsRotationInterval, minRotationInterval)
	within("workload-identity-token-min-expiration", o.WorkloadIdentity.MinExpiration, minTokenExpiration)
	within("workload-identity-token-max-expiration", o.WorkloadIdentity.MaxExpiration, minTokenExpiration)
	return errors.Join(append(errs, o.WorkloadIdentity.validate())...)
}

func (o WorkloadIdentityOptions) validate() error {
	var errs []error
	if o.MaxExpiration < o.MinExpiration {
		errs = append(errs, fmt.Errorf(
			"--workload-identity-token-max-expiration (%s) is shorter than --workload-identity-token-min-expiration (%s)",
			o.MaxExpiration, o.MinExpiration))
	}
	if (o.Issuer == "") != (o.SigningKeyFile == "") {
		errs = append(errs, errors.New("--workload-identity-token-issuer and --workload-identity-signing-key-file must be set together"))
	}
	if issuer, err := url.Parse(o.Issuer); o.Issuer != "" && (err != nil || issuer.Scheme != "https" || issuer.Host == "") {
		errs = append(errs, fmt.Errorf("--workload-identity-token-issuer %q is not an https URL", o.Issuer))
	}
	return errors.Join(errs...)
}

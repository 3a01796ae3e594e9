package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// requestPrefix is the prefix of the names of requests.
	requestPrefix = "seed-csr-"
	// approvalTimeout is how long a request may stay unsigned before a new one is created.
	approvalTimeout = 15 * time.Minute
	// requestTimeout limits each request to the garden.
	requestTimeout = 30 * time.Second
)

// issued is a client certificate with its key.
type issued struct {
	certificate, key []byte
	// request is the name of the CertificateSigningRequest.
	request string
}

// requester requests client certificates for the gardenlet of a Seed.
type requester struct {
	seed string
	// validity is the requested validity. 0 leaves it to the signer.
	validity time.Duration
	clock    clock.Clock
}

// request creates a CertificateSigningRequest with the given credentials and waits until it is signed. It polls, because
// a bootstrap token has no permission to watch requests.
func (r requester) request(ctx context.Context, garden *rest.Config) (issued, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := r.clock.NewTimer(approvalTimeout)
	defer timer.Stop()
	go func() {
		select {
		case <-timer.C():
			cancel(fmt.Errorf("it was not signed within %s", approvalTimeout))
		case <-ctx.Done():
		}
	}()
	garden = rest.CopyConfig(garden)
	garden.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(garden)
	if err != nil {
		return issued{}, fmt.Errorf("set up the connection to the garden: %w", err)
	}
	key, content, err := r.generate()
	if err != nil {
		return issued{}, err
	}
	requests := client.CertificatesV1().CertificateSigningRequests()
	created, err := requests.Create(ctx, r.object(content), metav1.CreateOptions{})
	if err != nil {
		return issued{}, fmt.Errorf("create a CertificateSigningRequest in the garden: %w", err)
	}
	certificate, err := r.await(ctx, requests, created.Name)
	if err != nil {
		return issued{}, fmt.Errorf("CertificateSigningRequest %s of the garden: %w", created.Name, err)
	}
	return issued{certificate, key, created.Name}, nil
}

// generate returns a private key and a certificate request, both in PEM.
func (r requester) generate() (key, request []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate a private key: %w", err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, fmt.Errorf("encode a private key: %w", err)
	}
	subject := &pkix.Name{CommonName: constants.PrefixSeedUser + r.seed, Organization: []string{constants.SeedsGroup}}
	if request, err = cert.MakeCSR(private, subject, nil, nil); err != nil {
		return nil, nil, fmt.Errorf("create a request for a certificate: %w", err)
	}
	return key, request, nil
}

// object returns the CertificateSigningRequest for a request in PEM.
func (r requester) object(content []byte) *certificatesv1.CertificateSigningRequest {
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: requestPrefix},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: content, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			// The garden only approves requests with exactly these usages.
			Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
			},
		},
	}
	if r.validity > 0 {
		seconds := int32(min(r.validity/time.Second, 1<<31-1))
		csr.Spec.ExpirationSeconds = &seconds
	}
	return csr
}

// errDenied reports that a request was denied or failed.
var errDenied = errors.New("it will not be signed")

// await polls a request until it is signed and returns the certificate.
func (r requester) await(ctx context.Context, requests certificatesclient.CertificateSigningRequestInterface, name string) ([]byte, error) {
	delays := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Steps: 10, Cap: 5 * time.Second}
	for {
		csr, err := requests.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, errors.New("it was deleted before it was signed")
		case err == nil && len(csr.Status.Certificate) > 0:
			return csr.Status.Certificate, nil
		case err == nil:
			if err := refusal(csr); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-r.clock.After(delays.Step()):
		}
	}
}

// refusal returns why a request will not be signed, or nil if it still can be.
func refusal(csr *certificatesv1.CertificateSigningRequest) error {
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return fmt.Errorf("%w: %s: %s: %s", errDenied, condition.Type, condition.Reason, condition.Message)
		}
	}
	return nil
}

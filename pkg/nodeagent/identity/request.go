package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// validity is what the node agent requests, in seconds: 30 days. The signer may give less.
	validity = 30 * 24 * 60 * 60
	// firstPoll and longestPoll are the times between two reads of a request. A request is given up after decisionTimeout.
	firstPoll, longestPoll = 500 * time.Millisecond, 10 * time.Second
	decisionTimeout        = 15 * time.Minute

	namePrefix = "node-agent-csr-"
)

// Requests creates and reads CertificateSigningRequests.
type Requests interface {
	CreateRequest(ctx context.Context, request *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error)
	Request(ctx context.Context, name string) (*certificatesv1.CertificateSigningRequest, error)
}

// Request requests a certificate for the node agent of a machine, and waits until it is issued. It returns the certificate and its key in PEM. The
// error says why a request was refused, or that it was not decided.
func Request(ctx context.Context, requests Requests, machine string, c clock.WithTicker) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: UserPrefix + machine, Organization: []string{Group}}}
	signed, err := x509.CreateCertificateRequest(rand.Reader, template, private)
	if err != nil {
		return nil, nil, err
	}
	created, err := requests.CreateRequest(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namePrefix},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: signed}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: ptr.To[int32](validity),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	})
	if err != nil {
		return nil, nil, err
	}
	certificate, err = await(ctx, requests, created.Name, c)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), err
}

// await waits for a certificate. Node agents may read their requests, but not watch them.
func await(ctx context.Context, requests Requests, name string, c clock.WithTicker) ([]byte, error) {
	var last error
	deadline, interval := c.Now().Add(decisionTimeout), firstPoll
	for c.Now().Before(deadline) {
		request, err := requests.Request(ctx, name)
		if last = err; err == nil {
			certificate, err := outcome(request)
			if err != nil || certificate != nil {
				return certificate, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.After(interval):
		}
		interval = min(2*interval, longestPoll)
	}
	return nil, errors.Join(fmt.Errorf("CertificateSigningRequest %s: no certificate was issued within %s: approve it, or check the approver and the signer",
		name, decisionTimeout), last)
}

// outcome returns the certificate of a request, nil if there is none yet, or an error if it was refused.
func outcome(request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	for _, condition := range request.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return nil, fmt.Errorf("CertificateSigningRequest %s is %s: %s: %s", request.Name, condition.Type, condition.Reason, condition.Message)
		}
	}
	if len(request.Status.Certificate) == 0 {
		return nil, nil
	}
	return request.Status.Certificate, nil
}

// RenewAt returns when a certificate is renewed: after 80 to 88 percent of its validity (Gardener). spread, from 0 to 1, keeps machines that joined
// together from renewing together.
func RenewAt(certificate *x509.Certificate, spread float64) time.Time {
	lifetime := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotBefore.Add(time.Duration(float64(lifetime) * 0.8 * (1 + spread/10)))
}

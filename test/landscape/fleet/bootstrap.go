package fleet

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// tokenID is the ID of gardenlet's bootstrap token. It is not secret.
	tokenID = "gdnlet"
	// tokenLength and tokenValidity are the length of the secret part, and how long a token can be used.
	tokenLength   = 16
	tokenValidity = time.Hour

	keyTokenSecret, keyExpiration = "token-secret", "expiration"
)

// bootstrapToken returns the bootstrap token of gardenlet. It creates one with a random secret unless one is still valid.
func (f *Fleet) bootstrapToken(ctx context.Context) (string, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + tokenID}}
	err := f.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read the bootstrap token: %w", err)
	}
	if err == nil {
		expires, invalid := time.Parse(time.RFC3339, string(secret.Data[keyExpiration]))
		if invalid == nil && time.Now().Before(expires.Add(-tokenValidity/2)) {
			return tokenID + "." + string(secret.Data[keyTokenSecret]), nil
		}
		if err := client.IgnoreNotFound(f.Delete(ctx, secret)); err != nil {
			return "", fmt.Errorf("delete the old bootstrap token: %w", err)
		}
	}
	token := strings.ToLower(rand.Text())[:tokenLength]
	created := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": tokenID, keyTokenSecret: token, "usage-bootstrap-authentication": "true",
			keyExpiration: time.Now().Add(tokenValidity).UTC().Format(time.RFC3339),
		},
	}
	if err := f.Create(ctx, created); err != nil {
		return "", fmt.Errorf("create the bootstrap token: %w", err)
	}
	return tokenID + "." + token, nil
}

// approveCertificates approves the certificates that gardenlet requests, as an operator of the garden would.
func (f *Fleet) approveCertificates(ctx context.Context) error {
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := f.List(ctx, requests); err != nil {
		return fmt.Errorf("list CertificateSigningRequests: %w", err)
	}
	for i := range requests.Items {
		request := &requests.Items[i]
		if len(request.Status.Conditions) > 0 || refusal(request, SeedName, tokenID) != nil {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ApprovedByLandscape", LastUpdateTime: metav1.Now(),
		}}
		if err := f.SubResource("approval").Update(ctx, request); err != nil {
			return fmt.Errorf("approve CertificateSigningRequest %s: %w", request.Name, err)
		}
	}
	return nil
}

// refusal returns why a request is not one of the gardenlet of a Seed for its own client certificate, or nil if it is. Either
// the bootstrap token or the gardenlet itself sends it. The name of a request proves nothing.
func refusal(request *certificatesv1.CertificateSigningRequest, seed, token string) error {
	user := constants.PrefixSeedUser + seed
	if sender := request.Spec.Username; sender != user && sender != "system:bootstrap:"+token {
		return fmt.Errorf("it was sent by %q", sender)
	}
	if request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return fmt.Errorf("it is for the signer %s", request.Spec.SignerName)
	}
	allowed := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	for _, usage := range request.Spec.Usages {
		if !slices.Contains(allowed, usage) {
			return fmt.Errorf("it is for the usage %q", usage)
		}
	}
	block, rest := pem.Decode(request.Spec.Request)
	if block == nil || len(strings.TrimSpace(string(rest))) > 0 {
		return errors.New("it does not contain exactly one PEM block")
	}
	content, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return fmt.Errorf("parse it: %w", err)
	}
	if err := content.CheckSignature(); err != nil {
		return fmt.Errorf("check its signature: %w", err)
	}
	switch subject := content.Subject; {
	case subject.CommonName != user || !slices.Equal(subject.Organization, []string{constants.SeedsGroup}) || len(subject.Names) != 2:
		return fmt.Errorf("its subject is %s", subject)
	case len(content.DNSNames)+len(content.IPAddresses)+len(content.EmailAddresses)+len(content.URIs) > 0:
		return errors.New("it has alternative names")
	}
	return nil
}

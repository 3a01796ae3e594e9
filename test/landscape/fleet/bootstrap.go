package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
			"description": "Bootstrap token for the gardenlet of Seed " + SeedName,
			keyExpiration: time.Now().Add(tokenValidity).UTC().Format(time.RFC3339),
		},
	}
	if err := f.Create(ctx, created); err != nil {
		return "", fmt.Errorf("create the bootstrap token: %w", err)
	}
	return tokenID + "." + token, nil
}

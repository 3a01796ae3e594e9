package virtual

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: garden
clusters: [{name: garden, cluster: {server: "https://virtual.garden.svc"}}]
contexts: [{name: garden, context: {cluster: garden, user: garden}}]
users: [{name: garden, user: {token: TOKEN}}]
`

func secret(token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: SecretName},
		Data:       map[string][]byte{"kubeconfig": []byte(strings.ReplaceAll(kubeconfig, "TOKEN", token))},
	}
}

// TestRefresh checks that the connection reads renewed tokens from the file, and that another server needs another connection.
func TestRefresh(t *testing.T) {
	config := &v1alpha1.OperatorConfiguration{}
	v1alpha1.SetDefaults(config)
	c := fake.NewClientBuilder().Build()
	access := New(c, "garden", t.TempDir(), "operator/v1", config, nil)
	if _, err := access.Refresh(t.Context()); !errors.Is(err, ErrNotReady) {
		t.Fatalf("without a Secret: %v", err)
	}
	for _, token := range []string{"", "one", "two"} {
		object := secret(token)
		if err := client.IgnoreNotFound(c.Delete(t.Context(), object.DeepCopy())); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		connection, err := access.Refresh(t.Context())
		if token == "" {
			if !errors.Is(err, ErrNotReady) {
				t.Fatalf("without a token: %v", err)
			}
			continue
		}
		if err != nil || connection.Host != "https://virtual.garden.svc" || connection.BearerToken != "" || connection.QPS != 100 {
			t.Fatalf("the connection is %v, %v", connection, err)
		}
		content, err := os.ReadFile(connection.BearerTokenFile)
		if err != nil || string(content) != token {
			t.Errorf("the file has %q, %v", content, err)
		}
		if info, err := os.Stat(filepath.Dir(connection.BearerTokenFile)); err != nil || !info.IsDir() {
			t.Errorf("the directory: %v", err)
		}
	}
	object := secret("three")
	object.Data["kubeconfig"] = []byte(strings.ReplaceAll(string(object.Data["kubeconfig"]), "virtual.garden", "other.garden"))
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, err := access.Refresh(t.Context()); !errors.Is(err, ErrReplaced) {
		t.Errorf("with another server: %v", err)
	}
}

func TestAddress(t *testing.T) {
	config := &v1alpha1.OperatorConfiguration{}
	access := New(fake.NewClientBuilder().WithObjects(secret("one")).Build(), "garden", t.TempDir(), "operator/v1", config,
		func() string { return "https://127.0.0.1:1" })
	connection, err := access.Refresh(t.Context())
	if err != nil || connection.Host != "https://127.0.0.1:1" || connection.ServerName != "virtual.garden.svc" {
		t.Errorf("the connection is %v, %v", connection, err)
	}
}

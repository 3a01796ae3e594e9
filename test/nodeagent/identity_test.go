package nodeagent

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/agent"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/identity"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/test/kit"
)

// certificate returns the certificate of the node agent, nil if it has none.
func (m *machine) certificate() *x509.Certificate {
	m.Helper()
	content := m.read(paths.Kubeconfig)
	if content == "" {
		return nil
	}
	config, err := kubeconfig.Parse([]byte(content))
	kit.Must(m, err)
	certificate, err := identity.Certificate(config)
	kit.Must(m, err)
	return certificate
}

// joined starts a machine with a configuration, and waits until its Node says that it is applied.
func (m *machine) joined(c *extensionsv1alpha1.OperatingSystemConfig) (stop func()) {
	m.Helper()
	checksum := m.offer(c)
	stop = m.start()
	m.join()
	m.applied(checksum)
	return stop
}

// TestRenewal checks that the certificate is renewed before it expires, without a restart of the process, and that the node agent then uses the new one.
func TestRenewal(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "renews")
	clock := m.fakeClock()
	m.joined(basic())
	first := m.certificate()
	if first.Subject.CommonName != "gardener.cloud:node-agent:machine:"+m.name || first.NotAfter.Sub(first.NotBefore) < 700*time.Hour {
		t.Errorf("the certificate is for %s, until %s", first.Subject, first.NotAfter)
	}
	clock.SetTime(first.NotBefore.Add(27 * 24 * time.Hour))
	kit.EventuallyTrue(t, "there is another certificate", func() bool {
		m.tick()
		return m.certificate().SerialNumber.Cmp(first.SerialNumber) != 0
	})
	changed := basic()
	changed.Spec.Files[0] = textFile("/etc/a", "with the new certificate")
	m.applied(m.offer(changed))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starts != 1 {
		t.Errorf("the process was started %d times", m.starts)
	}
}

func difference(want, got string) string {
	if want == got {
		return ""
	}
	return fmt.Sprintf("it is %q, not %q", got, want)
}

// TestOnlyOwnObjects checks that a node agent can read its Secret and its Node, and not those of others.
func TestOnlyOwnObjects(t *testing.T) {
	t.Parallel()
	m, other := newMachine(t, "own"), newMachine(t, "other")
	other.offer(basic())
	m.joined(basic())
	config, err := kubeconfig.Parse([]byte(m.read(paths.Kubeconfig)))
	kit.Must(t, err)
	client, err := cluster.New(config)
	kit.Must(t, err)
	if _, err := client.Secret(t.Context(), m.pool); err != nil {
		t.Error(err)
	}
	for _, name := range []string{other.pool, "bootstrap-token-" + other.tokenID} {
		if _, err := client.Secret(t.Context(), name); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("the Secret %s can be read: %v", name, err)
		}
	}
	if _, err := client.Lease(t.Context(), "gardener-node-agent-"+other.name); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("the Lease of another node can be read: %v", err)
	}
	if err := agent.Check(t.Context(), m.options()); err != nil {
		t.Errorf("the check of a new program fails: %v", err)
	}
	m.configure(func(c *v1alpha1.NodeAgentConfiguration) { c.Controllers.OperatingSystemConfig.SecretName = other.pool })
	if err := agent.Check(t.Context(), m.options()); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("the check of a program that cannot read its Secret passes: %v", err)
	}
	m.write(paths.Kubeconfig, "broken")
	if err := agent.Check(t.Context(), m.options()); err == nil || !strings.Contains(err.Error(), paths.Kubeconfig) {
		t.Errorf("the check of a program without certificate passes: %v", err)
	}
}

// TestTokens checks that tokens are written to files.
func TestTokens(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "tokens")
	m.configure(func(c *v1alpha1.NodeAgentConfiguration) {
		c.Controllers.Token.SyncConfigs = []v1alpha1.TokenSecretSyncConfig{{SecretName: "gardener-valitail", Path: "/var/lib/valitail/auth-token"}}
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "gardener-valitail"}, Data: map[string][]byte{"token": []byte("one")}}
	m.put(secret)
	m.joined(basic())
	written := func(want string) {
		t.Helper()
		kit.Eventually(t, "the token is written", func() string { return difference(want, m.read("/var/lib/valitail/auth-token")) })
	}
	written("one")
	info, err := os.Stat(m.root + "/var/lib/valitail/auth-token")
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("the file has the mode %v: %v", info.Mode(), err)
	}
	secret.Data["token"] = []byte("two")
	m.put(secret)
	written("two")
	kit.Must(t, m.admin.Delete(t.Context(), secret))
	secret.Data["token"], secret.ResourceVersion = []byte("three"), ""
	m.put(secret)
	written("three")
}

// TestOwnToken checks that a node agent whose kubeconfig has the file of a token uses the token that it writes there itself.
func TestOwnToken(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "owntoken")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: m.name}}
	kit.Must(t, m.admin.Create(t.Context(), account))
	kit.Must(t, m.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
	}))
	const path = paths.Credentials + "/token"
	first, second := m.token(account, m.name+"-one"), m.token(account, m.name+"-two")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: m.name}, Data: map[string][]byte{"token": []byte(first)}}
	m.put(secret)
	m.write(path, first)
	m.write("/etc/kubeconfig", fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],
"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"c","user":{"tokenFile":%q}}]}`,
		plane.Config().Host, base64.StdEncoding.EncodeToString(plane.Config().CAData), filepath.Join(m.root, path)))
	m.configure(func(c *v1alpha1.NodeAgentConfiguration) {
		c.ClientConnection.Kubeconfig = "/etc/kubeconfig"
		c.Controllers.Token.SyncConfigs = []v1alpha1.TokenSecretSyncConfig{{SecretName: secret.Name, Path: path}}
	})
	m.register()
	checksum := m.offer(basic())
	m.start()
	m.applied(checksum)
	secret.Data["token"] = []byte(second)
	m.put(secret)
	kit.Eventually(t, "the new token is written", func() string { return difference(second, m.read(path)) })
	kit.Must(t, m.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: m.name + "-one"}})) // ends the first token
	changed := basic()
	changed.Spec.Files[0] = textFile("/etc/a", "with the new token")
	m.applied(m.offer(changed))
}

// token returns a token of an account that is valid as long as a Secret exists.
func (m *machine) token(account *corev1.ServiceAccount, name string) string {
	m.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: name}}
	kit.Must(m, m.admin.Create(m.Context(), secret))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: secret.UID},
	}}
	kit.Must(m, m.admin.SubResource("token").Create(m.Context(), account, request))
	return request.Status.Token
}

// TestRest checks that a node agent at rest sends nothing but its Lease.
func TestRest(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "rests")
	clock := m.fakeClock()
	m.joined(basic())
	m.condition(corev1.ConditionTrue, "All systemd units are healthy")
	kit.Quiet(t, m.requests)
	m.requests.Forget()
	lease := "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/gardener-node-agent-" + m.name
	for i := range 12 { // at least two minutes
		kit.EventuallyTrue(t, "the Lease is renewed", func() bool {
			clock.Step(5 * time.Second)
			return len(m.requests.Single()) > i
		})
	}
	for _, sent := range m.requests.Single() {
		if sent.Method != http.MethodPut || sent.String() != lease {
			t.Errorf("sent %s", sent)
		}
	}
}

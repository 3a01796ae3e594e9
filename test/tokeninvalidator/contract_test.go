package tokeninvalidator

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestExampleOfTheSpecification is the example of gardener-resource-manager's documentation, with a token that was in use before.
func TestExampleOfTheSpecification(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account("my-serviceaccount", nil, nil)
	f.token("my-serviceaccount-token-ntxs9", account.Name)
	token := f.generated("my-serviceaccount-token-ntxs9")
	f.eventuallyAccepted(token)
	before := f.secret("my-serviceaccount-token-ntxs9")
	p := f.start()

	f.change(account, func() { account.AutomountServiceAccountToken = ptr.To(false) })
	f.eventuallyInvalid(before.Name)
	f.eventuallyRefused(token)
	after := f.secret(before.Name)
	if got := base64.StdEncoding.EncodeToString(after.Data["token"]); got != "AAAA" {
		t.Errorf("the token is %s", got)
	}
	before.Data["token"] = after.Data["token"]
	if !maps.EqualFunc(before.Data, after.Data, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Error("more than the token was changed")
	}
	if len(after.Labels) < 2 || after.Type != before.Type || after.Annotations[corev1.ServiceAccountNameKey] != account.Name ||
		after.Annotations[corev1.ServiceAccountUIDKey] != string(account.UID) {
		t.Errorf("the Secret is of type %s, with labels %v and annotations %v", after.Type, after.Labels, after.Annotations)
	}
	f.eventuallyTold(after, "Normal", "TokenInvalidated", "my-serviceaccount", "automountServiceAccountToken: false")
	wantMetric(p, "static_tokens_invalidated_total 1")
	if log := p.Written.String(); !strings.Contains(log, after.Name) || strings.Contains(log, token) || strings.Contains(log, "AAAA") {
		t.Error("the log does not name the Secret, or contains its token")
	}
}

func wantMetric(p *kit.Process, line string) {
	p.Helper()
	kit.EventuallyTrue(p, "the metrics contain "+line, func() bool {
		_, body := p.Get(p.Metrics, "/metrics")
		return strings.Contains(body, "resource_manager_"+line+"\n")
	})
}

// TestNewSecret creates the Secret after the ServiceAccount. A projected token of the same ServiceAccount stays valid.
func TestNewSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	account := f.account("a", ptr.To(false), nil)
	request := &authenticationv1.TokenRequest{}
	kit.Must(t, f.client.SubResource("token").Create(f.ctx, account, request))
	f.eventuallyAccepted(request.Status.Token)
	for i := range 3 {
		name := fmt.Sprintf("a-%d", i)
		f.token(name, "a")
		f.eventuallyInvalid(name)
	}
	// The controller finds the Secrets of a ServiceAccount only by their annotation.
	kit.Must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(account), account))
	if len(account.Secrets) != 0 {
		t.Errorf("the ServiceAccount names its Secrets: %v", account.Secrets)
	}
	f.eventuallyAccepted(request.Status.Token)
}

// TestSecretThatIsThereFirst starts the resource-manager when the Secret and its valid token already exist.
func TestSecretThatIsThereFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	token := f.generated("a-1")
	f.start()
	f.eventuallyInvalid("a-1")
	f.eventuallyRefused(token)
}

// TestRegeneratedTokens checks that a valid token cannot be restored by removing the token, writing it back, removing labels, or
// recreating the Secret or creating another one.
func TestRegeneratedTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	token := f.generated("a-1")
	f.start()
	f.eventuallyInvalid("a-1")

	f.patch(f.secret("a-1"), `{"data":{"token":null}}`)
	f.eventuallyInvalid("a-1")
	f.patch(f.secret("a-1"), `{"data":{"token":"`+base64.StdEncoding.EncodeToString([]byte(token))+`"}}`)
	f.eventuallyInvalid("a-1")
	f.patch(f.secret("a-1"), `{"data":null}`) // kube-controller-manager generates it again
	f.eventuallyInvalid("a-1")
	for _, labels := range []string{
		`{"` + purpose + `":null}`, `{"` + consider + `":null}`, `{"` + purpose + `":null,"` + consider + `":null}`,
	} {
		before := f.secret("a-1").ResourceVersion
		f.patch(f.secret("a-1"), `{"metadata":{"labels":`+labels+`}}`)
		kit.EventuallyTrue(t, "the labels are restored", func() bool {
			secret := f.secret("a-1")
			return secret.ResourceVersion != before && secret.Labels[purpose] != "" && secret.Labels[consider] == "true"
		})
		f.eventuallyInvalid("a-1")
	}
	f.eventuallyRefused(token)

	kit.Must(t, f.client.Delete(f.ctx, f.secret("a-1")))
	f.token("a-1", "a")
	f.token("a-2", "a")
	f.eventuallyInvalid("a-1")
	f.eventuallyInvalid("a-2")
	f.eventuallyRefused(token)
}

// TestRestored checks that a valid token is generated once Pods may have it, or the ServiceAccount is labelled. It is the same token as
// before. Another Secret gets a different token, and the former token becomes invalid with the deletion of its Secret.
func TestRestored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	first := f.generated("a-1")
	p := f.start()
	restored := 0
	for _, change := range []func(){
		func() { account.AutomountServiceAccountToken = ptr.To(true) },
		func() { account.AutomountServiceAccountToken = nil },
		func() { account.Labels = map[string]string{skip: "true"} },
	} {
		f.eventuallyInvalid("a-1")
		if restored == 0 { // only once, because API servers cache accepted tokens for a while
			f.eventuallyRefused(first)
		}
		f.change(account, change)
		if token := f.eventuallyRestored("a-1"); token != first {
			t.Error("the restored token is not the former one")
		}
		if got := f.secret("a-1").Labels[purpose]; got != "token-invalidator" {
			t.Errorf("the purpose is %q", got)
		}
		restored++
		wantMetric(p, fmt.Sprintf("static_tokens_restored_total %d", restored))
		f.change(account, func() { account.AutomountServiceAccountToken, account.Labels = ptr.To(false), nil })
	}
	f.eventuallyInvalid("a-1")
	secret := f.secret("a-1")
	kit.EventuallyTrue(t, "the Secret has an Event", func() bool { return len(f.events(secret, "TokenRestored")) > 0 })

	kit.Must(t, f.client.Delete(f.ctx, secret))
	f.change(account, func() { account.AutomountServiceAccountToken = nil })
	f.token("a-2", "a")
	second := f.generated("a-2")
	if second == first {
		t.Error("the token of another Secret is the same")
	}
	f.eventuallyAccepted(second)
	f.eventuallyRefused(first)
}

// TestSkip checks that the label keeps tokens valid with any value, and that they become invalid without it.
func TestSkip(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	values := []string{"true", "false", ""}
	for i, value := range values {
		name := fmt.Sprintf("a-%d", i)
		f.account(name, ptr.To(false), map[string]string{skip: value})
		f.token(name, name)
	}
	f.start()
	for i := range values {
		name := fmt.Sprintf("a-%d", i)
		secret := f.eventuallyMarked(name)
		if _, found := secret.Labels[consider]; found {
			t.Errorf("%s is labelled %v", name, secret.Labels)
		}
		f.eventuallyAccepted(f.generated(name))
		account := &corev1.ServiceAccount{ObjectMeta: f.meta(name)}
		f.change(account, func() { account.Labels = nil })
		f.eventuallyInvalid(name)
	}
}

// TestWantedTokens checks that tokens of ServiceAccounts whose automount field is true or not set stay valid, and that their Secrets
// get only the label for the purpose. Secrets that are not static tokens are unchanged.
func TestWantedTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account("unset", nil, nil)
	f.account("true", ptr.To(true), nil)
	f.account("false", ptr.To(false), nil)
	opaque := f.tokenSecret("opaque", "false")
	opaque.Type, opaque.Data = corev1.SecretTypeOpaque, map[string][]byte{"token": []byte("of somebody else")}
	kit.Must(t, f.client.Create(f.ctx, opaque))
	f.token("unset", "unset")
	f.token("true", "true")
	f.start()
	f.token("false", "false")
	f.eventuallyInvalid("false")
	for _, name := range []string{"unset", "true"} {
		secret := f.eventuallyMarked(name)
		if _, found := secret.Labels[consider]; found || secret.Labels[purpose] != "token-invalidator" {
			t.Errorf("%s is labelled %v", name, secret.Labels)
		}
		f.eventuallyAccepted(f.generated(name))
	}
	if secret := f.secret("opaque"); len(secret.Labels) != 0 || string(secret.Data["token"]) != "of somebody else" {
		t.Errorf("a Secret of another type has the labels %v and %d bytes of token", secret.Labels, len(secret.Data["token"]))
	}
}

// TestNamespaces checks that only configured namespaces are changed.
func TestNamespaces(t *testing.T) {
	f := newFixture(t)
	first, second := f.namespace, kit.NewNamespace(t, f.client, "tokens", nil)
	other := kit.NewNamespace(t, f.client, "tokens", nil)
	all := []string{other, first, second}
	for _, f.namespace = range all {
		f.account("a", ptr.To(false), nil)
		f.token("a-1", "a")
		f.generated("a-1")
	}
	p := f.startIn(first, second)
	for _, f.namespace = range []string{first, second} {
		f.eventuallyInvalid("a-1")
	}
	f.namespace = other
	if secret := f.secret("a-1"); len(secret.Labels) != 0 || len(secret.Data["token"]) < 100 {
		t.Errorf("in another namespace, a Secret has the labels %v and %d bytes of token", secret.Labels, len(secret.Data["token"]))
	}
	p.Stop()

	p = f.startIn() // all namespaces
	f.eventuallyInvalid("a-1")
	p.Stop()
}

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
		t.Error("the log does not name the Secret, or has its token")
	}
}

func wantMetric(p *kit.Process, line string) {
	p.Helper()
	kit.EventuallyTrue(p, "the metrics have "+line, func() bool {
		_, body := p.Get(p.Metrics, "/metrics")
		return strings.Contains(body, "resource_manager_"+line+"\n")
	})
}

// TestNewSecret: the ServiceAccount is there first, and the Secret is new; a projected token of the same ServiceAccount stays valid.
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
	// It knows of its Secrets from their annotation: nothing else tells any more.
	kit.Must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(account), account))
	if len(account.Secrets) != 0 {
		t.Errorf("the ServiceAccount names its Secrets: %v", account.Secrets)
	}
	f.eventuallyAccepted(request.Status.Token)
}

// TestSecretThatIsThereFirst: the Secret and its valid token are there when the resource-manager starts.
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

// TestRegeneratedTokens: whatever brings a valid token back is of no use: removing the token, writing it back, taking labels away,
// creating the Secret anew or another one.
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
	f.patch(f.secret("a-1"), `{"data":null}`) // kube-controller-manager fills it in
	f.eventuallyInvalid("a-1")
	for _, labels := range []string{
		`{"` + purpose + `":null}`, `{"` + consider + `":null}`, `{"` + purpose + `":null,"` + consider + `":null}`,
	} {
		before := f.secret("a-1").ResourceVersion
		f.patch(f.secret("a-1"), `{"metadata":{"labels":`+labels+`}}`)
		kit.EventuallyTrue(t, "the labels are back", func() bool {
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

// TestRestored: a valid token is generated as soon as Pods may have it, or the ServiceAccount is labelled. It is the former one. The
// token of another Secret is another one, and the former one ends with its Secret.
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
		if restored == 0 { // once is enough, since API servers remember for a while what they accepted
			f.eventuallyRefused(first)
		}
		f.change(account, change)
		if token := f.eventuallyRestored("a-1"); token != first {
			t.Error("the token is another one")
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
	kit.EventuallyTrue(t, "there is an Event", func() bool { return len(f.events(secret, "TokenRestored")) > 0 })

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

// TestSkip: the label keeps tokens valid with any value; without it they become invalid.
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

// TestWantedTokens: those of ServiceAccounts that say nothing, or true, stay valid, and their Secrets get the label for the purpose
// alone. So do Secrets that are no static tokens.
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

// TestNamespaces: with namespaces configured, nothing else is touched.
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

	p = f.startIn() // all
	f.eventuallyInvalid("a-1")
	p.Stop()
}

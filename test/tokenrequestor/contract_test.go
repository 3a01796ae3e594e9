package tokenrequestor

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/tokenrequestor"
	"github.com/trellis-k8s/trellis/test/kit"
)

// lifetimeOf returns the lifetime and the audiences that a token contains.
func lifetimeOf(tb testing.TB, token string) (time.Duration, []string) {
	tb.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	kit.Must(tb, err)
	var claims struct {
		Audiences []string `json:"aud"`
		IssuedAt  int64    `json:"iat"`
		Expires   int64    `json:"exp"`
	}
	kit.Must(tb, json.Unmarshal(payload, &claims))
	return time.Duration(claims.Expires-claims.IssuedAt) * time.Second, claims.Audiences
}

// wantRenewal checks the renewal time of a Secret, which may differ by seconds because the API server rounds times.
func (f *fixture) wantRenewal(secret *corev1.Secret, in time.Duration) {
	f.Helper()
	got, err := time.Parse(time.RFC3339, secret.Annotations[renewal])
	kit.Must(f, err)
	if want := f.clock.Now().Add(in); got.Sub(want).Abs() > 2*time.Second || !strings.HasSuffix(secret.Annotations[renewal], "Z") {
		f.Errorf("the token is renewed at %s, want %s", secret.Annotations[renewal], want.UTC().Format(time.RFC3339))
	}
}

// TestTokenInSecret checks that the ServiceAccount is created, that data.token contains a token of 12 hours for the audience gardener,
// and that the annotation contains its renewal time.
func TestTokenInSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", map[string]string{"other": "kept"}, accountKeys+"labels", `{"some":"labels","foo":"bar"}`)
	secret, result := f.reconcile("web")
	if got := f.sent(); got != "GET secrets, GET secrets, GET serviceaccounts, PATCH serviceaccounts, POST serviceaccounts/token, PATCH secrets" {
		t.Errorf("the requests are %s", got)
	}
	f.wantToken(string(secret.Data["token"]), "web")
	if lifetime, audiences := lifetimeOf(t, string(secret.Data["token"])); lifetime != 12*time.Hour || !slices.Equal(audiences, []string{"gardener"}) {
		t.Errorf("the token is valid for %s and %v", lifetime, audiences)
	}
	const in = 12*time.Hour*8/10 + 12*time.Hour*8/10*25/1000 // jitter of 5 %, half of it
	f.wantRenewal(secret, in)
	if (result.RequeueAfter - in).Abs() > 2*time.Second {
		t.Errorf("the Secret is reconciled again after %s, want %s", result.RequeueAfter, in)
	}
	if keys := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(keys, []string{"other", "token"}) {
		t.Errorf("the keys are %v", keys)
	}
	if len(secret.Finalizers) != 0 {
		t.Errorf("the finalizers are %v", secret.Finalizers)
	}
	account := f.account("web")
	if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Error("Pods mount the token automatically")
	}
	if !maps.Equal(account.Labels, map[string]string{"some": "labels", "foo": "bar"}) || len(account.Annotations) != 0 {
		t.Errorf("the ServiceAccount has the labels %v and the annotations %v", account.Labels, account.Annotations)
	}
	if f.metric("token_renewals_total", "NoTimestamp") != 1 {
		t.Error("the renewal is not counted")
	}
}

// kubeconfigTemplate returns the example of the concept document, for the given API server.
func kubeconfigTemplate(server string) string {
	return `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: AAAA
    server: ` + server + `
  name: shoot--foo--bar
contexts:
- context:
    cluster: shoot--foo--bar
    user: shoot--foo--bar-token
  name: shoot--foo--bar
current-context: shoot--foo--bar
kind: Config
preferences: {}
users:
- name: shoot--foo--bar-token
  user:
    token: ""
`
}

// TestKubeconfig checks that the kubeconfig of the Secret gets the token and the CA bundle, so that it can be used.
func TestKubeconfig(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	asJSON := `{"kind":"Config","apiVersion":"v1","current-context":"a","contexts":[{"name":"a","context":{"user":"u","cluster":"c"}},` +
		`{"name":"b","context":{"user":"v","cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"` + f.config.Host + `"}}],"users":[{"name":"u","user":{}},{"name":"v","user":{}}]}`
	for name, template := range map[string]string{"yaml": kubeconfigTemplate(f.config.Host), "json": asJSON} {
		f.newSource(name, map[string]string{"kubeconfig": template}, accountKeys+"inject-ca-bundle", "true")
		secret, _ := f.reconcile(name)
		if keys := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(keys, []string{"kubeconfig"}) {
			t.Errorf("%s: the keys are %v", name, keys)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
		kit.Must(t, err)
		user, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(f.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		kit.Must(t, err)
		if got := user.Status.UserInfo.Username; got != "system:serviceaccount:"+f.target+":"+name {
			t.Errorf("%s: the user is %s", name, got)
		}
		if bytes, err := json.Marshal(string(secret.Data["kubeconfig"])); err != nil || strings.HasPrefix(string(bytes), `"{`) {
			t.Errorf("%s: the kubeconfig is not written as YAML", name)
		}
	}
}

// TestCABundle checks that the bundle is written to its own key, follows its file, and is removed with it.
func TestCABundle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	source := f.newSource("web", nil, accountKeys+"inject-ca-bundle", "true")
	secret, _ := f.reconcile("web")
	if string(secret.Data["bundle.crt"]) != string(f.config.CAData) {
		t.Error("the bundle differs from the bundle of the client configuration")
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	kit.Must(t, os.WriteFile(file, []byte("from a file"), 0o600))
	withFile := func(r *tokenrequestor.Reconciler) { r.Target.CAData, r.Target.CAFile = nil, file }
	f.start(withFile)
	first := string(secret.Data["token"])
	if secret, _ = f.reconcile("web"); string(secret.Data["bundle.crt"]) != "from a file" || string(secret.Data["token"]) == first {
		t.Errorf("the bundle is %q", secret.Data["bundle.crt"])
	}
	if f.metric("token_renewals_total", "BundleChanged") != 1 {
		t.Error("no token was requested for the new bundle")
	}
	kit.Must(t, os.WriteFile(file, []byte("another one"), 0o600))
	f.change(source, func(s *corev1.Secret) { annotate(s, "touched", "yes") })
	if secret, _ = f.reconcile("web"); string(secret.Data["bundle.crt"]) != "another one" {
		t.Errorf("the bundle is %q", secret.Data["bundle.crt"])
	}
	kit.Must(t, os.Remove(file))
	f.change(source, func(s *corev1.Secret) { annotate(s, "touched", "again") })
	if _, err := f.try("web"); err == nil || !strings.Contains(err.Error(), "CA bundle") {
		t.Errorf("the error for a missing file is %v", err)
	}
	f.start(func(r *tokenrequestor.Reconciler) { r.Target.CAData = nil })
	if secret, _ = f.reconcile("web"); secret.Data["bundle.crt"] != nil {
		t.Errorf("without a bundle it is %q", secret.Data["bundle.crt"])
	}
}

// TestExpirationDuration checks that the annotation determines the lifetime, in whole seconds.
func TestExpirationDuration(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for duration, want := range map[string]time.Duration{"6h": 6 * time.Hour, "10m": 10 * time.Minute, "3600.7s": time.Hour, "720h": 720 * time.Hour} {
		name := strings.ReplaceAll("for-"+duration, ".", "-")
		f.newSource(name, nil, accountKeys+"token-expiration-duration", duration)
		secret, _ := f.reconcile(name)
		if lifetime, _ := lifetimeOf(t, string(secret.Data["token"])); lifetime != want {
			t.Errorf("%s: valid for %s", duration, lifetime)
		}
		f.wantRenewal(secret, min(want, 24*time.Hour)*8/10+min(want, 24*time.Hour)*8/10*25/1000)
	}
}

// TestReasonsToRenew checks that each reason causes the request of a new token, and nothing else does.
func TestReasonsToRenew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for reason, change := range map[string]func(*corev1.Secret){
		"":            func(s *corev1.Secret) { annotate(s, "touched", "yes") },
		"NoTimestamp": func(s *corev1.Secret) { annotate(s, renewal, "") },
		"NoToken":     func(s *corev1.Secret) { s.Data["token"] = nil },
		"Due":         func(s *corev1.Secret) { annotate(s, renewal, f.clock.Now().Format(time.RFC3339)) },
		"ServiceAccountCreated": func(s *corev1.Secret) {
			kit.Must(t, f.client.Delete(f.ctx, f.account(s.Name)))
			annotate(s, "touched", "yes")
		},
		"BundleChanged": func(s *corev1.Secret) { annotate(s, accountKeys+"inject-ca-bundle", "1") },
		"ServiceAccountReplaced": func(s *corev1.Secret) {
			account := f.account(s.Name)
			kit.Must(t, f.client.Delete(f.ctx, account))
			account.ResourceVersion, account.UID = "", ""
			kit.Must(t, f.client.Create(f.ctx, account))
			annotate(s, "touched", "yes")
		},
	} {
		f.start(nil)
		name := "because-" + strings.ToLower(reason)
		if reason == "" {
			name = "no-cause"
		}
		source := f.newSource(name, nil)
		before, _ := f.reconcile(name)
		f.clock.Step(11 * time.Minute)
		f.change(source, change)
		after, _ := f.reconcile(name)
		f.wantToken(string(after.Data["token"]), name)
		if renewed := string(before.Data["token"]) != string(after.Data["token"]); renewed != (reason != "") {
			t.Errorf("%s: a new token: %t", name, renewed)
		}
		if reason != "" && reason != "NoTimestamp" && f.metric("token_renewals_total", reason) != 1 {
			t.Errorf("%s is not counted", reason)
		}
	}
}

// TestUnreadableTimestamp checks that an invalid timestamp is replaced.
func TestUnreadableTimestamp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", map[string]string{"token": "x"}, renewal, "tomorrow")
	secret, _ := f.reconcile("web")
	f.wantToken(string(secret.Data["token"]), "web")
	f.wantRenewal(secret, 12*time.Hour*8/10+12*time.Hour*8/10*25/1000)
}

// TestTargetSync checks that the token is written to a Secret of the target cluster, whose other data is kept. The source Secret keeps
// the timestamp.
func TestTargetSync(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	source := f.newSource("web", map[string]string{"mine": "kept"}, accountKeys+"inject-ca-bundle", "true")
	secret, _ := f.reconcile("web")
	if secret.Data["token"] == nil || secret.Data["bundle.crt"] == nil {
		t.Fatal("the Secret has no token, or no bundle")
	}
	f.change(source, func(s *corev1.Secret) { annotate(s, f.sync("copy")...) })
	secret, _ = f.reconcile("web")
	if keys := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(keys, []string{"mine"}) || secret.Annotations[renewal] == "" {
		t.Errorf("the source Secret has the keys %v and is renewed at %s", keys, secret.Annotations[renewal])
	}
	target := f.secret(f.target, "copy")
	f.wantToken(string(target.Data["token"]), "web")
	if string(target.Data["bundle.crt"]) != string(f.config.CAData) || len(target.Labels) != 0 || len(target.Annotations) != 0 {
		t.Errorf("the target Secret is %v", target.ObjectMeta)
	}
	if f.metric("token_renewals_total", "TargetMissing") != 1 {
		t.Error("the cause is not counted")
	}

	// The other data of the target Secret is kept, and if it has a kubeconfig, the token is written there.
	target.Data = map[string][]byte{"theirs": []byte("kept"), "kubeconfig": []byte(kubeconfigTemplate(f.config.Host))}
	kit.Must(t, f.client.Update(f.ctx, target))
	f.start(nil)
	f.reconcile("web")
	target = f.secret(f.target, "copy")
	config, err := clientcmd.RESTConfigFromKubeConfig(target.Data["kubeconfig"])
	kit.Must(t, err)
	f.wantToken(config.BearerToken, "web")
	if keys := slices.Sorted(maps.Keys(target.Data)); !slices.Equal(keys, []string{"kubeconfig", "theirs"}) {
		t.Errorf("the target Secret has the keys %v", keys)
	}
	f.start(nil)
	f.sent()
	if f.reconcile("web"); strings.Contains(f.sent(), "POST serviceaccounts/token") {
		t.Error("a valid token in the target Secret was renewed")
	}
	kit.Must(t, f.client.Delete(f.ctx, target))
	f.start(nil)
	f.reconcile("web")
	f.wantToken(string(f.secret(f.target, "copy").Data["token"]), "web")
}

// TestTemplateOfTheSourceStays checks that a kubeconfig in the source Secret loses only the token if the token is written to the target
// cluster, and gets it again otherwise.
func TestTemplateOfTheSourceStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	template := kubeconfigTemplate(f.config.Host)
	source := f.newSource("web", map[string]string{"kubeconfig": template})
	f.reconcile("web")
	f.change(source, func(s *corev1.Secret) { annotate(s, f.sync("copy")...) })
	secret, _ := f.reconcile("web")
	if string(secret.Data["kubeconfig"]) != template {
		t.Errorf("the template is\n%s", secret.Data["kubeconfig"])
	}
	f.wantToken(string(f.secret(f.target, "copy").Data["token"]), "web")
	f.change(source, func(s *corev1.Secret) { annotate(s, targetKeys+"name", "") })
	secret, _ = f.reconcile("web")
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	kit.Must(t, err)
	f.wantToken(config.AuthInfos["shoot--foo--bar-token"].Token, "web")
}

// TestLabels checks that labels that are removed from the annotation are deleted, that labels of other clients are kept, and that
// labels of gardener-resource-manager are taken over.
func TestLabels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	source := f.newSource("web", nil, accountKeys+"labels", `{"a":"1","b":"1"}`)
	f.reconcile("web")
	account := f.account("web")
	account.Labels["theirs"] = "kept"
	kit.Must(t, f.client.Update(f.ctx, account, client.FieldOwner("somebody")))
	f.change(source, func(s *corev1.Secret) { annotate(s, accountKeys+"labels", `{"b":"2","c":"1"}`) })
	f.reconcile("web")
	if got := f.account("web").Labels; !maps.Equal(got, map[string]string{"b": "2", "c": "1", "theirs": "kept"}) {
		t.Errorf("the labels are %v", got)
	}
	f.change(source, func(s *corev1.Secret) { annotate(s, accountKeys+"labels", "") })
	f.reconcile("web")
	if got := f.account("web").Labels; !maps.Equal(got, map[string]string{"theirs": "kept"}) {
		t.Errorf("without the annotation the labels are %v", got)
	}

	for name, test := range map[string]struct{ annotations, want map[string]string }{
		"of-its-token-requestor": {nil, map[string]string{"a": "1", "theirs": "kept"}},
		"of-a-managed-resource":  {map[string]string{"resources.gardener.cloud/origin": "a/b"}, map[string]string{"a": "1", "old": "1", "theirs": "kept"}},
	} {
		mount := true
		account := &corev1.ServiceAccount{
			ObjectMeta:                   metav1.ObjectMeta{Namespace: f.target, Name: name, Labels: map[string]string{"a": "1", "old": "1"}, Annotations: test.annotations},
			AutomountServiceAccountToken: &mount,
		}
		kit.Must(t, f.client.Create(f.ctx, account, client.FieldOwner("gardener-resource-manager")))
		account.Labels["theirs"] = "kept"
		kit.Must(t, f.client.Update(f.ctx, account, client.FieldOwner("somebody")))
		f.newSource(name, nil, accountKeys+"labels", `{"a":"1"}`)
		f.reconcile(name)
		if account = f.account(name); !maps.Equal(account.Labels, test.want) || *account.AutomountServiceAccountToken {
			t.Errorf("%s: the labels are %v", name, account.Labels)
		}
	}
}

// TestNamespaceHasToExist checks that a missing namespace is retried and reported in an Event.
func TestNamespaceHasToExist(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", nil, accountKeys+"namespace", f.target+"-later")
	for range 3 {
		if _, err := f.try("web"); err == nil || !strings.Contains(err.Error(), "its namespace must exist") {
			t.Errorf("the error is %v", err)
		}
	}
	f.wantEvent("Warning RequestRefused", "create ServiceAccount "+f.target+"-later/web of the target cluster")
	if event := f.event(); event != "" {
		t.Errorf("the Event was recorded twice: %s", event)
	}
	kit.Must(t, f.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.target + "-later"}}))
	secret, _ := f.reconcile("web")
	if !f.accepted(string(secret.Data["token"])).Authenticated {
		t.Error("the Secret has no valid token")
	}
}

// TestSelection checks that purpose, class and namespace determine the responsible token requestor.
func TestSelection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const class, purpose = "resources.gardener.cloud/class", "resources.gardener.cloud/purpose"
	tests := map[string]struct {
		labels  map[string]string
		options tokenrequestor.Options
		want    bool
	}{
		"purpose-and-class": {map[string]string{purpose: "token-requestor", class: "shoot"}, tokenrequestor.Options{Class: "shoot"}, true},
		"no-class":          {map[string]string{purpose: "token-requestor"}, tokenrequestor.Options{Class: "shoot"}, false},
		"another-class":     {map[string]string{purpose: "token-requestor", class: "garden"}, tokenrequestor.Options{Class: "shoot"}, false},
		"another-purpose":   {map[string]string{purpose: "token-invalidator", class: "shoot"}, tokenrequestor.Options{Class: "shoot"}, false},
		"all-without-class": {map[string]string{purpose: "token-requestor"}, tokenrequestor.Options{}, true},
		"all-with-class":    {map[string]string{purpose: "token-requestor", class: "garden"}, tokenrequestor.Options{}, true},
		"in-the-namespace":  {map[string]string{purpose: "token-requestor"}, tokenrequestor.Options{Namespaces: []string{"x", f.source}}, true},
		"elsewhere":         {map[string]string{purpose: "token-requestor"}, tokenrequestor.Options{Namespaces: []string{"x"}}, false},
		"excluded": {map[string]string{purpose: "token-requestor"},
			tokenrequestor.Options{Excludes: func(namespace string) bool { return namespace == f.source }}, false},
	}
	for name, test := range tests {
		source := f.newSource(name, nil)
		f.change(source, func(s *corev1.Secret) { s.Labels = test.labels })
		f.start(func(r *tokenrequestor.Reconciler) { r.Options = test.options })
		secret, _ := f.reconcile(name)
		if got := secret.Data["token"] != nil; got != test.want || got != (f.account(name) != nil) {
			t.Errorf("%s: a token: %t", name, got)
		}
	}
}

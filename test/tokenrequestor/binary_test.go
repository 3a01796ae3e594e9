package tokenrequestor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

var installOnce sync.Once

// startBinary starts a resource-manager with settings for the token requestor.
func (f *fixture) startBinary(settings string) *kit.Process {
	f.Helper()
	installOnce.Do(func() { kit.DefineManagedResources(f, f.config) })
	return kit.StartManager(f, shared.Get(f).Kubeconfig(), []string{f.source, f.target}, "controllers: {tokenRequestor: "+settings+"}\n")
}

// eventuallyToken waits for a token of a ServiceAccount in a Secret and returns the Secret.
func (f *fixture) eventuallyToken(namespace, name, account string, but ...string) *corev1.Secret {
	f.Helper()
	var secret *corev1.Secret
	kit.Eventually(f, "Secret "+name+" has a token", func() string {
		secret = f.secret(namespace, name)
		switch {
		case secret == nil:
			return "it does not exist"
		case len(secret.Data["token"]) == 0 || slices.Contains(but, string(secret.Data["token"])):
			return "it has no token, or a former one"
		}
		return ""
	})
	f.wantToken(string(secret.Data["token"]), account)
	return secret
}

// TestBinaryRequestsTokensIfEnabled checks that the configuration enables the token requestor. It reacts to every change of source
// Secrets, and reports in metrics and Events.
func TestBinaryRequestsTokensIfEnabled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("before", nil)
	p := f.startBinary("{enabled: true, serviceAccountNamespaces: [" + f.target + "]}")
	f.eventuallyToken(f.source, "before", "before")
	source := f.newSource("after", nil)
	secret := f.eventuallyToken(f.source, "after", "after")
	first := string(secret.Data["token"])
	f.change(source, func(s *corev1.Secret) { s.Data = nil })
	secret = f.eventuallyToken(f.source, "after", "after", first)
	second := string(secret.Data["token"])
	f.change(source, func(s *corev1.Secret) { annotate(s, renewal, "2020-01-01T00:00:00Z") })
	f.eventuallyToken(f.source, "after", "after", first, second)

	other := f.newSource("other", nil)
	f.change(other, func(s *corev1.Secret) { s.Labels["resources.gardener.cloud/class"] = "garden" })
	f.newSource("forbidden", nil, accountKeys+"namespace", "default")
	kit.Eventually(t, "an Event reports the forbidden namespace", func() string {
		list := &eventsv1.EventList{}
		kit.Must(t, f.client.List(f.ctx, list, client.InNamespace(f.source)))
		for _, event := range list.Items {
			if event.Regarding.Name == "forbidden" && event.Reason == "NamespaceNotAllowed" && event.Type == corev1.EventTypeWarning {
				return ""
			}
		}
		return fmt.Sprint(len(list.Items), " Events")
	})
	kit.Eventually(t, "the metrics have the expected values", func() string {
		_, body := p.Get(p.Metrics, "/metrics")
		for _, want := range []string{
			`resource_manager_tokens{state="failing"} 1`, `resource_manager_tokens{state="expired"} 0`,
			`resource_manager_token_renewals_total{reason="NoToken"} 1`, `resource_manager_token_renewals_total{reason="Due"} 1`,
			`resource_manager_token_failures_total{reason="NamespaceNotAllowed"} 1`, "resource_manager_token_earliest_expiry_timestamp_seconds 1.",
		} {
			if !strings.Contains(body, want) {
				return "missing: " + want
			}
		}
		return ""
	})
	if text := p.Written.String(); strings.Contains(text, "eyJ") {
		t.Error("the log contains a token")
	}
	p.Stop()
}

// TestBinaryDoesNothingUnlessEnabled checks that the token requestor is disabled by default.
func TestBinaryDoesNothingUnlessEnabled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", nil)
	p := f.startBinary("{}")
	kit.EventuallyTrue(t, "the controllers run", func() bool { return strings.Count(p.Written.String(), "Starting workers") == 2 })
	if _, body := p.Get(p.Metrics, "/metrics"); strings.Contains(body, "resource_manager_token") || f.secret(f.source, "web").Data["token"] != nil {
		t.Error("the token requestor runs although it is not enabled")
	}
}

// TestBinaryReplacesTokensOfLostAccounts checks that the deletion and the replacement of a ServiceAccount, which make its tokens
// invalid, trigger a new token, without a resync.
func TestBinaryReplacesTokensOfLostAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("deleted", nil)
	f.newSource("replaced", nil)
	f.startBinary("{enabled: true, serviceAccountNamespaces: [" + f.target + "]}")
	deleted := string(f.eventuallyToken(f.source, "deleted", "deleted").Data["token"])
	replaced := string(f.eventuallyToken(f.source, "replaced", "replaced").Data["token"])
	kit.Must(t, f.client.Delete(f.ctx, f.account("deleted")))
	f.eventuallyToken(f.source, "deleted", "deleted", deleted)
	account := f.account("replaced")
	kit.Must(t, f.client.Delete(f.ctx, account))
	kit.Must(t, client.IgnoreAlreadyExists(f.client.Create(f.ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name},
	})))
	f.eventuallyToken(f.source, "replaced", "replaced", replaced)
}

// TestBinaryLooksAgainAtAResync checks that the next resync detects the deletion of a target Secret, which triggers no event.
func TestBinaryLooksAgainAtAResync(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.newSource("web", nil, f.sync("copy")...)
	connection := "{kubeconfig: $KUBECONFIG, namespaces: [" + f.source + "], cacheResyncPeriod: 10s}"
	kit.StartManagerWith(t, shared.Get(t).Kubeconfig(), `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: `+connection+`
server:
  healthProbes: {bindAddress: 127.0.0.1, port: $HEALTH_PORT}
  metrics: {bindAddress: 127.0.0.1, port: $METRICS_PORT}
  webhooks: {bindAddress: 127.0.0.1, port: $WEBHOOK_PORT}
leaderElection: {leaderElect: false}
controllers: {tokenRequestor: {enabled: true}}
`)
	copied := f.eventuallyToken(f.target, "copy", "web")
	kit.Must(t, f.client.Delete(f.ctx, copied))
	f.eventuallyToken(f.target, "copy", "web", string(copied.Data["token"]))
}

// TestNothingIsCleanedUpByDefault checks that ServiceAccount and target Secret are kept without marks, as in gardener-resource-manager.
func TestNothingIsCleanedUpByDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.startBinary("{enabled: true}")
	source := f.newSource("web", nil, f.sync("copy")...)
	f.eventuallyToken(f.target, "copy", "web")
	kit.Must(t, f.client.Delete(f.ctx, source))
	f.newSource("next", nil) // reconciled later
	f.eventuallyToken(f.source, "next", "next")
	account, secret := f.account("web"), f.secret(f.target, "copy")
	if account == nil || secret == nil || len(account.Labels)+len(account.Annotations)+len(secret.Labels)+len(secret.Annotations) != 0 {
		t.Errorf("the remaining objects are %v and %v", account, secret)
	}
}

// wantGone waits until the ServiceAccount and the Secret of the target cluster no longer exist.
func (f *fixture) wantGone(account, secret string) {
	f.Helper()
	kit.Eventually(f, "ServiceAccount "+account+" and Secret "+secret+" no longer exist", func() string {
		if f.account(account) != nil || f.secret(f.target, secret) != nil {
			return "at least one of them exists"
		}
		return ""
	})
}

// TestCleanUp checks that with cleanUp, objects that the token requestor created are deleted once no source Secret references them,
// even if that happened while it did not run. Objects that existed before, that another source Secret uses or that belong to a
// ManagedResource are kept.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"mine", "mine-too"} {
		kit.Must(t, f.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.target, Name: name}}))
	}
	kit.Must(t, f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.target, Name: "mine"}}))
	p := f.startBinary("{enabled: true, cleanUp: true}")
	sources := map[string]*corev1.Secret{}
	for _, name := range []string{"deleted", "renamed", "unlabelled", "offline", "offline-renamed", "managed"} {
		sources[name] = f.newSource(name, nil, f.sync(name)...)
		f.eventuallyToken(f.target, name, name)
	}
	mine := f.newSource("mine", nil, f.sync("mine")...)
	f.eventuallyToken(f.target, "mine", "mine")
	sharing := f.newSource("sharing", nil, accountKeys+"name", "renamed")
	f.eventuallyToken(f.source, "sharing", "renamed")

	kit.Must(t, f.client.Delete(f.ctx, sources["deleted"]))
	f.wantGone("deleted", "deleted")
	f.change(sources["unlabelled"], func(s *corev1.Secret) { delete(s.Labels, "resources.gardener.cloud/purpose") })
	f.wantGone("unlabelled", "unlabelled")
	f.change(sources["renamed"], func(s *corev1.Secret) { annotate(s, accountKeys+"name", "new", targetKeys+"name", "new") })
	f.eventuallyToken(f.target, "new", "new")
	f.wantGone("none", "renamed")
	if f.account("renamed") == nil {
		t.Error("a ServiceAccount that another Secret references was deleted")
	}
	f.wantToken(string(f.secret(f.source, "sharing").Data["token"]), "renamed")
	kit.Must(t, f.client.Delete(f.ctx, sharing))
	f.wantGone("renamed", "none")

	managed := f.account("managed")
	kit.Change(t, f.client, managed, func() { managed.Annotations[resourcesv1alpha1.AnnotationOrigin] = "a/b" })
	kit.Must(t, f.client.Delete(f.ctx, sources["managed"]))
	f.wantGone("none", "managed")
	kit.Must(t, f.client.Delete(f.ctx, mine))
	p.Stop()

	kit.Must(t, f.client.Delete(f.ctx, sources["offline"]))
	f.change(sources["offline-renamed"], func(s *corev1.Secret) { annotate(s, accountKeys+"name", "newer", targetKeys+"name", "newer") })
	f.startBinary("{enabled: true, cleanUp: true}")
	f.wantGone("offline", "offline")
	f.wantGone("offline-renamed", "offline-renamed")
	f.eventuallyToken(f.target, "newer", "newer")
	if f.account("managed") == nil || f.account("mine") == nil || f.account("mine-too") == nil || f.secret(f.target, "mine") == nil {
		t.Error("an object that the token requestor did not create was deleted")
	}
}

// manage creates a ManagedResource with one manifest.
func (f *fixture) manage(name, manifest string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.source, Name: "manifests-" + name}, StringData: map[string]string{"objects.yaml": manifest},
	}
	kit.Must(f, f.client.Create(f.ctx, secret))
	kit.Must(f, f.client.Create(f.ctx, &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.source, Name: name},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: secret.Name}}},
	}))
	return secret
}

// settledVersion returns a Secret once the ManagedResource and the token requestor have nothing more to do: a reconciliation of both
// was triggered, and neither changed the Secret.
func (f *fixture) settledVersion(namespace, name, managedResource string) *corev1.Secret {
	f.Helper()
	for round := 0; ; round++ {
		before := f.secret(namespace, name)
		key := types.NamespacedName{Namespace: f.source, Name: managedResource}
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		kit.Change(f, f.client, mr, func() {
			mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
		})
		kit.Eventually(f, "the ManagedResource was reconciled", func() string {
			kit.Must(f, f.client.Get(f.ctx, key, mr))
			applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
			if mr.Annotations[resourcesv1alpha1.AnnotationOperation] != "" || applied.Status != resourcesv1alpha1.ConditionTrue || mr.Status.ObservedGeneration != mr.Generation {
				return fmt.Sprintf("%s: %s", applied.Reason, applied.Message)
			}
			return ""
		})
		probe := f.newSource("", nil, accountKeys+"name", "probe") // the token requestor has caught up too
		f.eventuallyToken(f.source, probe.Name, "probe")
		after := f.secret(namespace, name)
		if before != nil && before.ResourceVersion == after.ResourceVersion {
			return after
		}
		if round == 20 {
			f.Fatalf("Secret %s/%s changes repeatedly", namespace, name)
		}
	}
}

// TestManagedResourceWithTheSourceSecret uses a ManagedResource that applies the source Secret, with or without a template, which the
// token requestor fills. Neither reverts the other's changes. Changes of the manifest next to the token are applied.
func TestManagedResourceWithTheSourceSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.startBinary("{enabled: true}")
	manifest := func(data string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: NAME\n  namespace: %s\n  labels: {resources.gardener.cloud/purpose: token-requestor, resources.gardener.cloud/class: shoot}\n"+
			"  annotations: {%[2]sname: web, %[2]snamespace: %s, %[2]sinject-ca-bundle: 'true'}\n%[4]s", f.source, accountKeys, f.target, data)
	}
	template := "stringData:\n  kubeconfig: |\n    " + strings.ReplaceAll(kubeconfigTemplate(f.config.Host), "\n", "\n    ") + "\n"
	for name, data := range map[string]string{"plain": "", "with-template": template, "with-empty-token": "stringData: {token: ''}\n"} {
		text := strings.Replace(manifest(data), "NAME", name, 1)
		manifests := f.manage(name, text)
		kit.Eventually(t, "the Secret has a token", func() string {
			if secret := f.secret(f.source, name); secret == nil || f.tokenIn(secret) == "" {
				return "it has no token"
			}
			return ""
		})
		secret := f.settledVersion(f.source, name, name)
		token := f.tokenIn(secret)
		f.wantToken(token, "web")
		if secret.Annotations[resourcesv1alpha1.AnnotationOrigin] == "" || secret.Annotations[renewal] == "" {
			t.Errorf("%s: the annotations are %v", name, secret.Annotations)
		}
		f.change(manifests, func(s *corev1.Secret) {
			s.Data["objects.yaml"] = []byte(strings.Replace(text, "  labels: {", "  labels: {added: later, ", 1))
		})
		kit.EventuallyTrue(t, "the change of the manifest is applied", func() bool { return f.secret(f.source, name).Labels["added"] == "later" })
		if after := f.settledVersion(f.source, name, name); f.tokenIn(after) != token {
			t.Errorf("%s: the token was replaced", name)
		}
	}
}

// tokenIn returns the token of a Secret, from its kubeconfig if it has one.
func (f *fixture) tokenIn(secret *corev1.Secret) string {
	f.Helper()
	if secret.Data["kubeconfig"] == nil {
		return string(secret.Data["token"])
	}
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	kit.Must(f, err)
	return config.AuthInfos["shoot--foo--bar-token"].Token
}

// TestManagedResourceWithTheTargetSecret checks the same for the Secret of the target cluster, with either the ManagedResource or the
// token requestor first.
func TestManagedResourceWithTheTargetSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.startBinary("{enabled: true}")
	for _, name := range []string{"resource-first", "requestor-first"} {
		manifest := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData:\n  config: theirs\n  kubeconfig: |\n    %s\n",
			name, f.target, strings.ReplaceAll(kubeconfigTemplate(f.config.Host), "\n", "\n    "))
		request := func() {
			f.newSource("source-of-"+name, nil, f.sync(name)...)
			kit.Eventually(t, "the source Secret is served", func() string {
				return map[bool]string{true: "", false: "it is not"}[f.secret(f.source, "source-of-"+name).Annotations[renewal] != ""]
			})
		}
		if name == "requestor-first" {
			request()
		}
		f.manage(name, manifest)
		kit.EventuallyTrue(t, "the ManagedResource is applied", func() bool {
			secret := f.secret(f.target, name)
			return secret != nil && secret.Data["kubeconfig"] != nil
		})
		if name == "resource-first" {
			request()
		} else {
			// The next reconciliation finds the kubeconfig of the manifest.
			f.change(f.secret(f.source, "source-of-"+name), func(s *corev1.Secret) { annotate(s, "touched", "yes") })
		}
		kit.EventuallyTrue(t, "the token is in the kubeconfig", func() bool { return f.tokenIn(f.secret(f.target, name)) != "" })
		secret := f.settledVersion(f.target, name, name)
		f.wantToken(f.tokenIn(secret), "source-of-"+name)
		if keys := slices.Sorted(maps.Keys(secret.Data)); string(secret.Data["config"]) != "theirs" || !slices.Contains(keys, "kubeconfig") {
			t.Errorf("%s: the keys are %v", name, keys)
		}
	}
}

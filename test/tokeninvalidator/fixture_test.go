// Package tokeninvalidator tests the controller and the webhook of the token invalidator with real tokens: kube-controller-manager
// generates them, and kube-apiserver accepts or refuses them.
package tokeninvalidator

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	tokenwebhook "github.com/trellis-k8s/trellis/pkg/webhooks/tokeninvalidator"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

const (
	purpose  = "resources.gardener.cloud/purpose"
	consider = "token-invalidator.resources.gardener.cloud/consider"
	skip     = "token-invalidator.resources.gardener.cloud/skip"
	// withoutWebhook is the label of namespaces that the webhook is not called for.
	withoutWebhook = "test/without-webhook"
)

// invalid is the token that replaces a valid one: AAAA in base64.
var invalid = string([]byte{0, 0, 0})

var (
	directory string
	shared    = controlplane.Shared{Options: controlplane.Options{ControllerManager: true}}
	setUp     sync.Once
	webhooks  *envtest.WebhookInstallOptions
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	var err error
	if directory, err = os.MkdirTemp("", "tokeninvalidator-"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(directory) }()
	shared.Options.AuditLog = filepath.Join(directory, "audit.log")
	if err := useKeyOfClusters(); err != nil {
		panic(err)
	}
	code := shared.Run(m)
	if webhooks != nil {
		_ = webhooks.Cleanup()
	}
	return code
}

// useKeyOfClusters configures an RSA key to sign tokens, as in most clusters. The default key of envtest has another type.
func useKeyOfClusters() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	file := filepath.Join(directory, "service-account.key")
	shared.Options.APIServerArgs = map[string][]string{"service-account-signing-key-file": {file}, "service-account-key-file": {file}}
	shared.Options.ControllerManagerArgs = []string{"--service-account-private-key-file=" + file}
	return os.WriteFile(file, private, 0o600)
}

// serve installs the definition of ManagedResources, and serves and registers the webhook in the same way as gardener-resource-manager.
func serve(t *testing.T, config *rest.Config, c client.Client) {
	t.Helper()
	kit.DefineManagedResources(t, config)
	path := tokenwebhook.Path
	webhooks = &envtest.WebhookInstallOptions{MutatingWebhooks: []*admissionregistrationv1.MutatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener-resource-manager"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{registration(admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "garden", Name: "gardener-resource-manager", Path: &path},
		}, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: withoutWebhook, Operator: metav1.LabelSelectorOpDoesNotExist,
		}}})},
	}}}
	kit.Must(t, webhooks.Install(config))
	server := webhook.NewServer(webhook.Options{
		Host: webhooks.LocalServingHost, Port: webhooks.LocalServingPort, CertDir: webhooks.LocalServingCertDir,
	})
	server.Register(path, &webhook.Admission{Handler: tokenwebhook.NewHandler()})
	go func() {
		if err := server.Start(context.Background()); err != nil {
			panic(err)
		}
	}()
	kit.Eventually(t, "the webhook is called", func() string {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe", Labels: map[string]string{
				purpose: "token-invalidator", consider: "true",
			}},
			Data: map[string][]byte{"a": nil},
		}
		err := c.Create(t.Context(), secret, client.DryRunAll)
		if err == nil && string(secret.Data["token"]) != invalid {
			err = errors.New("the token is not changed")
		}
		return kit.TextOf(err)
	})
}

// registration is gardener-resource-manager's registration of the webhook, for the selected namespaces.
func registration(to admissionregistrationv1.WebhookClientConfig, namespaces *metav1.LabelSelector) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: "token-invalidator.resources.gardener.cloud", ClientConfig: to,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
		}},
		NamespaceSelector: namespaces,
		ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{purpose: "token-invalidator"}},
		FailurePolicy:     ptr.To(admissionregistrationv1.Fail), MatchPolicy: ptr.To(admissionregistrationv1.Exact),
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: ptr.To[int32](10),
		AdmissionReviewVersions: []string{"v1beta1", "v1"},
	}
}

// fixture is a namespace.
type fixture struct {
	*testing.T
	ctx       context.Context
	config    *rest.Config
	client    client.Client
	namespace string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	config := shared.Get(t).Config()
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, resourcesv1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	kit.Must(t, err)
	setUp.Do(func() { serve(t, config, c) })
	return &fixture{T: t, ctx: t.Context(), config: config, client: c, namespace: kit.NewNamespace(t, c, "tokens", nil)}
}

// start starts a resource-manager for the namespace of the fixture and others.
func (f *fixture) start(others ...string) *kit.Process {
	f.Helper()
	return f.startIn(append(others, f.namespace)...)
}

const enabled = "controllers: {tokenInvalidator: {enabled: true}}\n"

func (f *fixture) startIn(namespaces ...string) *kit.Process {
	f.Helper()
	return kit.StartManager(f, shared.Get(f).Kubeconfig(), namespaces, enabled)
}

func (f *fixture) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.namespace, Name: name}
}

// account creates a ServiceAccount.
func (f *fixture) account(name string, automount *bool, labels map[string]string) *corev1.ServiceAccount {
	f.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: f.meta(name), AutomountServiceAccountToken: automount}
	account.Labels = labels
	kit.Must(f, f.client.Create(f.ctx, account))
	return account
}

// change changes a ServiceAccount.
func (f *fixture) change(account *corev1.ServiceAccount, change func()) {
	f.Helper()
	kit.Eventually(f, "the ServiceAccount is changed", func() string {
		if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(account), account); err != nil {
			return err.Error()
		}
		change()
		return kit.TextOf(f.client.Update(f.ctx, account))
	})
}

// tokenSecret returns a Secret for a static token.
func (f *fixture) tokenSecret(name, account string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: f.meta(name), Type: corev1.SecretTypeServiceAccountToken}
	secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
	return secret
}

// token creates a Secret for a static token.
func (f *fixture) token(name, account string) *corev1.Secret {
	f.Helper()
	secret := f.tokenSecret(name, account)
	kit.Must(f, f.client.Create(f.ctx, secret))
	return secret
}

func (f *fixture) secret(name string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{}
	kit.Must(f, f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, secret))
	return secret
}

// generated waits for a valid token and returns it.
func (f *fixture) generated(name string) string {
	f.Helper()
	var token string
	kit.EventuallyTrue(f, "a token is generated in "+name, func() bool {
		token = string(f.secret(name).Data["token"])
		return len(token) > 100
	})
	return token
}

// eventuallyInvalid waits until a Secret has the invalid token and the corresponding labels and data.
func (f *fixture) eventuallyInvalid(name string) {
	f.Helper()
	kit.Eventually(f, "the token in "+name+" is invalid", func() string {
		secret := f.secret(name)
		labels, token := secret.Labels[purpose]+" "+secret.Labels[consider], string(secret.Data["token"])
		if labels != "token-invalidator true" || token != invalid || len(secret.Data["ca.crt"]) == 0 || string(secret.Data["namespace"]) != f.namespace {
			return fmt.Sprintf("labels %q, %d bytes of token, %d keys", labels, len(token), len(secret.Data))
		}
		return ""
	})
}

// eventuallyRestored waits until a Secret has a valid token again, and returns it.
func (f *fixture) eventuallyRestored(name string) string {
	f.Helper()
	kit.EventuallyTrue(f, "the Secret "+name+" is not labelled", func() bool {
		_, found := f.secret(name).Labels[consider]
		return !found
	})
	token := f.generated(name)
	f.eventuallyAccepted(token)
	return token
}

// eventuallyMarked waits until the controller has labelled a Secret, and returns it.
func (f *fixture) eventuallyMarked(name string) *corev1.Secret {
	f.Helper()
	kit.EventuallyTrue(f, "the Secret "+name+" is labelled with a purpose", func() bool { return f.secret(name).Labels[purpose] != "" })
	return f.secret(name)
}

// use sends a request with a token. Every authenticated user may send it.
func (f *fixture) use(token string) error {
	config := rest.AnonymousClientConfig(f.config)
	config.BearerToken = token
	c, err := client.New(config, client.Options{Scheme: f.client.Scheme(), Mapper: f.client.RESTMapper()})
	kit.Must(f, err)
	return c.Create(f.ctx, &authenticationv1.SelfSubjectReview{})
}

// review asks the API server to review a token.
func (f *fixture) review(token string) authenticationv1.TokenReviewStatus {
	f.Helper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	kit.Must(f, f.client.Create(f.ctx, review))
	return review.Status
}

// eventuallyAccepted waits until a token is accepted. Refusals are cached for a while.
func (f *fixture) eventuallyAccepted(token string) {
	f.Helper()
	kit.Eventually(f, "the token is accepted", func() string { return kit.TextOf(f.use(token)) })
	kit.EventuallyTrue(f, "a TokenReview accepts the token", func() bool { return f.review(token).Authenticated })
}

// eventuallyRefused waits until a token is refused. Acceptance is cached for ten seconds.
func (f *fixture) eventuallyRefused(token string) {
	f.Helper()
	kit.Eventually(f, "the token is refused with 401", func() string {
		err := f.use(token)
		if apierrors.IsUnauthorized(err) {
			return ""
		}
		return fmt.Sprintf("the answer is %v", err)
	})
	kit.EventuallyTrue(f, "a TokenReview refuses the token", func() bool { return !f.review(token).Authenticated })
}

// events returns the Events of a Secret with a reason.
func (f *fixture) events(secret *corev1.Secret, reason string) []eventsv1.Event {
	f.Helper()
	list := &eventsv1.EventList{}
	kit.Must(f, f.client.List(f.ctx, list, client.InNamespace(secret.Namespace)))
	return slices.DeleteFunc(list.Items, func(event eventsv1.Event) bool {
		return event.Reason != reason || event.Regarding.Kind != "Secret" || event.Regarding.UID != secret.UID
	})
}

// eventuallyTold waits for an Event for a Secret. It checks that the Event is the only one with the reason and contains some texts.
func (f *fixture) eventuallyTold(secret *corev1.Secret, kind, reason string, says ...string) {
	f.Helper()
	var events []eventsv1.Event
	kit.EventuallyTrue(f, "the Secret has an Event "+reason, func() bool {
		events = f.events(secret, reason)
		return len(events) > 0
	})
	f.checkTold(events, kind, says...)
}

func (f *fixture) checkTold(events []eventsv1.Event, kind string, says ...string) {
	f.Helper()
	if len(events) != 1 || events[0].Series != nil || events[0].Type != kind || events[0].Related == nil || events[0].Related.Kind != "ServiceAccount" {
		f.Errorf("the Events are %+v", events)
		return
	}
	for _, text := range says {
		if !strings.Contains(events[0].Note, text) {
			f.Errorf("the Event does not contain %q: %s", text, events[0].Note)
		}
	}
}

// patch changes an object by a merge patch.
func (f *fixture) patch(obj client.Object, patch string, options ...client.PatchOption) {
	f.Helper()
	kit.Must(f, f.client.Patch(f.ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch)), options...))
}

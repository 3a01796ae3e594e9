package admissioncontroller

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/audit"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
)

const namespace = "garden-dev"

// TestRules makes requests that each rule of the admission controller admits and refuses, through a real API server.
func TestRules(t *testing.T) {
	f := newFixture(t)
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: project("dev")}})
	for _, rule := range []func(){f.kubeconfigs, f.files, f.restriction, f.sizes, f.domains, f.labels, f.gardenlets, f.namespaces} {
		rule()
	}
	f.rights()
}

// rights compares the requests of the program with its rights.
func (f *fixture) rights() {
	requests, _ := audit.RequestsAndWatches(f, shared.Options.ControlPlane.AuditLog, "system:serviceaccount:garden:gardener-admission-controller", 0)
	unused := map[string]string{
		"update secrets": "only a renewal of the certificate",
	}
	for _, resource := range []string{"backupbuckets", "backupentries", "internalsecrets", "seeds", "shoots", "shootstates"} {
		unused["get "+resource+".core.gardener.cloud"] = "only some writes of gardenlets"
	}
	unused["get managedseeds.seedmanagement.gardener.cloud"] = "only the start of a gardenlet"
	unused["get gardenlets.seedmanagement.gardener.cloud"] = "only the start of a gardenlet"
	fleet.CheckRightsOf(f, f.client, requests, unused, "gardener-admission-controller")
}

func secret(name string, data, labels map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func configMap(name, key, value string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: map[string]string{key: value}}
}

// shoot returns a Shoot without workers, whose kube-apiserver has further settings (YAML).
func (f *fixture) shoot(name, settings string) *corev1beta1.Shoot {
	f.Helper()
	shoot := &corev1beta1.Shoot{}
	kit.Must(f, yaml.UnmarshalStrict(fmt.Appendf(nil, `
metadata: {namespace: %s, name: %s}
spec:
  cloudProfile: {kind: CloudProfile, name: local}
  region: local
  kubernetes: {version: 1.34.2, kubeAPIServer: %s}
  provider: {type: local}
`, namespace, name, settings), shoot))
	return shoot
}

const (
	kubeconfig = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://a.example.org'}}]\n" +
		"users: [{name: a, user: {token: t}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
	kubeconfigWithProgram = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://a.example.org'}}]\n" +
		"users: [{name: a, user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}]\n" +
		"contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
)

func (f *fixture) kubeconfigs() {
	ctx := f.Context()
	f.refused("a kubeconfig", "", f.client.Create(ctx, secret("hook", map[string]string{"kubeconfig": kubeconfig}, nil)))
	f.refused("a kubeconfig that runs a program", "exec", f.client.Create(ctx, secret("x", map[string]string{"kubeconfig": kubeconfigWithProgram}, nil)))
	own := secret("x", map[string]string{"kubeconfig": kubeconfigWithProgram}, nil)
	own.Namespace = "garden"
	f.refused("a kubeconfig of operators", "", f.client.Create(ctx, own))
}

func (f *fixture) files() {
	ctx := f.Context()
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	audited := func(name, configMap string) *corev1beta1.Shoot {
		return f.shoot(name, "{auditConfig: {auditPolicy: {configMapRef: {name: "+configMap+"}}}}")
	}
	f.refused("a missing ConfigMap", "does not exist in namespace garden-dev", f.client.Create(ctx, audited("a", "missing")))
	f.create(configMap("bad", "policy", "kind: Policy", nil))
	f.refused("an invalid audit policy", "ConfigMap bad, to which Shoot a refers", f.client.Create(ctx, audited("a", "bad")))
	good := configMap("good", "policy", policy, nil)
	f.create(good)
	f.create(audited("a", "good"))
	good.Data["policy"] = strings.Replace(policy, "Metadata", "All", 1)
	f.refused("a ConfigMap in use that becomes invalid", "rules[0].level", f.client.Update(ctx, good))
	good.Data["policy"] = strings.Replace(policy, "Metadata", "Request", 1)
	f.refused("a ConfigMap in use that changes", "", f.client.Update(ctx, good))

	f.create(configMap("authentication", "config.yaml", "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\njwt: [{}]\n", nil))
	f.refused("an invalid configuration of authentication", "jwt[0].issuer.url",
		f.client.Create(ctx, f.shoot("b", "{structuredAuthentication: {configMapName: authentication}}")))
	f.create(configMap("authorization", "config.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"+
		"authorizers: [{type: Webhook, name: hook, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny}}]\n", nil))
	const authorized = "{structuredAuthorization: {configMapName: authorization, kubeconfigs: [{authorizerName: %s, secretName: hook}]}}"
	f.refused("a webhook without a kubeconfig", `no entry for the authorizer "hook"`, f.client.Create(ctx, f.shoot("b", fmt.Sprintf(authorized, "other"))))
	f.create(f.shoot("b", fmt.Sprintf(authorized, "hook")))
	f.refused("a kubeconfig in use that is removed", "Shoot b refers to it in spec.kubernetes.kubeAPIServer.structuredAuthorization",
		f.client.Patch(ctx, secret("hook", nil, nil), client.RawPatch(types.MergePatchType, []byte(`{"data":{"kubeconfig":null}}`))))
}

func (f *fixture) restriction() {
	ctx, restricted := f.Context(), map[string]string{"gardener.cloud/update-restriction": "true"}
	gardenlet := f.as("a member of the group", "gardener.cloud:system:seeds")
	for _, object := range []client.Object{secret("public", map[string]string{"a": "b"}, restricted), configMap("public", "a", "b", restricted)} {
		const text = "only gardenlets may write it"
		f.refused("creation by an administrator", text, f.client.Create(ctx, object, client.DryRunAll))
		f.refused("creation by a gardenlet", "", gardenlet.Create(ctx, object))
		unlabelled := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
		f.refused("removal of the label by an administrator", text, f.client.Patch(ctx, object, unlabelled))
		f.refused("deletion by an administrator", text, f.client.Delete(ctx, object))
		f.refused("deletion by a gardenlet", "", gardenlet.Delete(ctx, object))
	}
}

func (f *fixture) sizes() {
	ctx := f.Context()
	large := func() client.Object { return configMap("large", "a", strings.Repeat("x", 2000), nil) }
	f.refused("a large ConfigMap", "more than the 2k that are allowed", f.client.Create(ctx, large()))
	f.refused("a large ConfigMap of a gardenlet", "", f.as("a member of the group", "gardener.cloud:system:seeds").Create(ctx, large()))
	class := func(name string) client.Object {
		return &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "internet"}
	}
	f.refused("the first ExposureClass", "", f.client.Create(ctx, class("a")))
	f.refused("the second ExposureClass", "at most 1 are allowed", f.client.Create(ctx, class("b")))
}

func (f *fixture) domains() {
	ctx := f.Context()
	domain := func(name, domain string) *corev1.Secret {
		secret := secret(name, nil, map[string]string{"gardener.cloud/role": "internal-domain"})
		secret.Namespace, secret.Annotations = "garden", map[string]string{"dns.gardener.cloud/domain": domain, "dns.gardener.cloud/provider": "local"}
		return secret
	}
	f.refused("an invalid domain", "is not a domain", f.client.Create(ctx, domain("domain", "_")))
	f.refused("a domain", "", f.client.Create(ctx, domain("domain", "internal.example.org")))
	f.refused("a second one", "already has an internal domain, in Secret domain", f.client.Create(ctx, domain("second", "internal.example.org")))
	changed := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"dns.gardener.cloud/domain":"other.example.org"}}}`))
	f.refused("another domain while there are Shoots", "must not change while there are Shoots", f.client.Patch(ctx, domain("domain", ""), changed))
	f.refused("the deletion while there are Shoots", "must not change while there are Shoots", f.client.Delete(ctx, domain("domain", "")))
	seed := domain("domain", "a.example.org")
	seed.Namespace = "seed-a"
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-a"}})
	f.create(seed)
	f.refused("another domain of a Seed without Shoots", "", f.client.Patch(ctx, seed, changed))
}

func (f *fixture) labels() {
	ctx := f.Context()
	f.create(secret("credentials", map[string]string{"a": "b"}, nil))
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "local"}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "credentials"},
	}
	f.create(binding)
	const label = "provider.shoot.gardener.cloud/local"
	kit.EventuallyTrue(f, "the Secret has the label of the provider after an update", func() bool {
		found := secret("credentials", nil, nil)
		kit.Must(f, f.client.Patch(ctx, found, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"provider.shoot.gardener.cloud/other":"true"}}}`))))
		return found.Labels[label] == "true" && found.Labels["provider.shoot.gardener.cloud/other"] == ""
	})
}

func (f *fixture) namespaces() {
	ctx := f.Context()
	remove := func() error {
		return f.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, client.DryRunAll)
	}
	owner := &corev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "dev", Finalizers: []string{"gardener"}, Annotations: map[string]string{"confirmation.gardener.cloud/deletion": "true"}},
		Spec:       corev1beta1.ProjectSpec{Namespace: ptr.To(namespace)},
	}
	f.create(owner)
	f.refused("the namespace of a Project", "Project dev, which is not being deleted", remove())
	kit.Must(f, f.client.Delete(ctx, owner))
	f.refused("the namespace of a Project that goes, with Shoots", "still contains Shoots, such as", remove())
	for _, name := range []string{"a", "b"} {
		shoot := f.shoot(name, "{}")
		confirmed := []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"},"finalizers":null}}`)
		kit.Must(f, f.client.Patch(ctx, shoot, client.RawPatch(types.MergePatchType, confirmed)))
		kit.Must(f, f.client.Delete(ctx, shoot))
	}
	f.refused("the namespace of a Project that goes", "", remove())
}

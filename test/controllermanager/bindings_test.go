package controllermanager

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

const labelProvider = constants.LabelPrefixShootProvider + "local"

// has reports whether an object has exactly these labels of bindings, and these of the finalizers of bindings.
func (u *uses) has(object client.Object, labels, finalizers []string) bool {
	u.Helper()
	if !u.exists(object) {
		return false
	}
	for _, label := range []string{labelProvider, constants.LabelReferenceSecretBinding, constants.LabelReferenceCredentialsBinding} {
		if (object.GetLabels()[label] == "true") != slices.Contains(labels, label) {
			return false
		}
	}
	for _, finalizer := range []string{constants.FinalizerSecretBinding, constants.FinalizerCredentialsBinding} {
		if slices.Contains(object.GetFinalizers(), finalizer) != slices.Contains(finalizers, finalizer) {
			return false
		}
	}
	return true
}

// secret and identity are the credentials of the bindings.
func (u *uses) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "local"}}
}

func (u *uses) identity() *securityv1alpha1.WorkloadIdentity {
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "local"}}
	identity.Spec.Audiences, identity.Spec.TargetSystem.Type = []string{"cloud"}, "local"
	return identity
}

// marks checks that credentials and Quotas get the labels and finalizers of the bindings that refer to them, also after these were removed by
// hand, and that the controller-manager cannot change anything else of credentials.
func (u *uses) marks() {
	references := []string{constants.LabelReferenceSecretBinding, constants.LabelReferenceCredentialsBinding}
	both := append(slices.Clone(references), labelProvider)
	finalizers := []string{constants.FinalizerSecretBinding, constants.FinalizerCredentialsBinding}
	secret, identity := u.secret(), u.identity()
	kit.EventuallyTrue(u, "the Secret is marked", func() bool { return u.has(secret, both, finalizers) })
	kit.EventuallyTrue(u, "the WorkloadIdentity is marked", func() bool { return u.has(identity, both[1:], finalizers[1:]) })
	kit.EventuallyTrue(u, "the Quota is marked", func() bool { return u.has(u.quota, references, nil) })
	kit.Change(u, u.client, secret, func() { secret.Labels, secret.Finalizers = map[string]string{"mine": "x"}, nil })
	kit.EventuallyTrue(u, "the Secret is marked again", func() bool { return u.has(secret, both, finalizers) && secret.Labels["mine"] == "x" })
	if string(secret.Data["key"]) != "value" {
		u.Errorf("the Secret has %d keys, and another value", len(secret.Data))
	}
	u.changesOnlyMarks(secret)
}

// changesOnlyMarks checks that a policy refuses other changes of Secrets.
func (u *uses) changesOnlyMarks(secret *corev1.Secret) {
	u.Helper()
	config := u.plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	manager, err := client.New(config, client.Options{Scheme: u.client.Scheme(), Mapper: u.client.RESTMapper()})
	kit.Must(u, err)
	patch := func(text string) error {
		target := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
		return manager.Patch(u.Context(), target, client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
	}
	for _, text := range []string{
		`{"data": {"key": "b3RoZXI="}}`, `{"data": {"other": ""}}`, `{"metadata": {"labels": {"other": "x"}}}`, `{"metadata": {"labels": {"mine": null}}}`,
		`{"metadata": {"annotations": {"other": "x"}}}`, `{"metadata": {"finalizers": ["example.org/other"]}}`, `{"immutable": true}`,
	} {
		// kube-apiserver reads new policies after about a second.
		kit.Eventually(u, text+" is refused by the policy", func() string {
			if err := patch(text); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "controller-manager.gardener.cloud") {
				return "the answer is " + kit.TextOf(err)
			}
			return ""
		})
	}
	kit.Must(u, patch(`{"metadata": {"labels": {"reference.gardener.cloud/secretbinding": null}, "finalizers": null}}`))
}

// unmarked checks that a Secret without bindings is released.
func (u *uses) unmarked() {
	secret := u.secret()
	kit.EventuallyTrue(u, "the Secret is released", func() bool { return u.has(secret, nil, nil) && secret.Labels["mine"] == "x" })
	u.delete(secret)
	kit.EventuallyTrue(u, "the Secret is deleted", func() bool { return !u.exists(secret) })
}

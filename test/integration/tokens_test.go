package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const tokenRequestor = "gardener-resource-manager"

// tokenSecret returns the manifest of a Secret.
func (f *fixture) tokenSecret(labels, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: access, namespace: %s, labels: {%s}}\nstringData: {%s}\n", f.namespace, labels, data)
}

// applyAndRequest applies a Secret as the predecessor, and fills it as the predecessor's token requestor. Both write
// as the same manager.
func (f *fixture) applyAndRequest(labels map[string]string) {
	f.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "access", Labels: labels},
		Data:       map[string][]byte{"config": []byte("1"), "obsolete": []byte("1")},
	}
	must(f, f.client.Create(f.ctx, secret, fieldOwner(tokenRequestor)))
	secret.Data["token"], secret.Data["bundle.crt"] = []byte("t"), []byte("c")
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.AnnotationTokenRenewTimestamp, "2026-01-01T00:00:00Z")
	must(f, f.client.Update(f.ctx, secret, fieldOwner(tokenRequestor)))
}

// liveKeys returns the keys of the Secret's data, and whether the time of the token's renewal is recorded.
func (f *fixture) liveKeys() (string, bool) {
	f.Helper()
	secret := &corev1.Secret{}
	must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "access"}, secret))
	_, renewed := secret.Annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp]
	return strings.Join(slices.Sorted(maps.Keys(secret.Data)), " "), renewed
}

const tokenLabels = "resources.gardener.cloud/purpose: token-requestor, resources.gardener.cloud/class: shoot"

var tokenLabelMap = map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}

func TestTokenOfATakenOverSecretIsKept(t *testing.T) {
	f := newFixture(t)
	f.applyAndRequest(tokenLabelMap)
	f.manage("set", f.tokenSecret(tokenLabels, `config: "1"`))
	f.reconcileOK("set")
	if keys, renewed := f.liveKeys(); keys != "bundle.crt config token" || !renewed {
		t.Errorf("the keys of the Secret are %s, and a time of renewal exists: %t", keys, renewed)
	}
	f.wantQuiet("set")
	f.restart()
	f.wantQuiet("set")
	f.secret("set", "objects.yaml", f.tokenSecret(tokenLabels, `other: "2"`))
	f.reconcileOK("set")
	if keys, renewed := f.liveKeys(); keys != "bundle.crt other token" || !renewed {
		t.Errorf("after a change the keys of the Secret are %s, and a time of renewal exists: %t", keys, renewed)
	}
}

func TestTokenOfAManifestIsTakenOver(t *testing.T) {
	f := newFixture(t)
	f.applyAndRequest(tokenLabelMap)
	f.manage("set", f.tokenSecret(tokenLabels, `config: "1", token: t`))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.tokenSecret(tokenLabels, `config: "1"`))
	f.reconcileOK("set")
	if keys, _ := f.liveKeys(); keys != "bundle.crt config" {
		t.Errorf("the keys of the Secret are %s", keys)
	}
}

// The token requestor copies tokens into Secrets of the target cluster that only the source Secret names. The
// resource-manager itself has to find them in its cache of the source cluster.
func TestBinaryKeepsCopiedTokens(t *testing.T) {
	for name, test := range map[string]struct {
		target string
		want   string
	}{
		"a target of a token requestor": {"access", "bundle.crt config token"},
		"another Secret":                {"elsewhere", "config"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.applyAndRequest(map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"}) // like a ManagedResource
			must(t, f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: f.namespace, Name: "source", Labels: tokenLabelMap, Annotations: map[string]string{
					resourcesv1alpha1.AnnotationTokenTargetName:      test.target,
					resourcesv1alpha1.AnnotationTokenTargetNamespace: f.namespace,
				},
			}}))
			f.start(noElection)
			f.manage("set", f.tokenSecret("", `config: "1"`))
			f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
			if keys, _ := f.liveKeys(); keys != test.want {
				t.Errorf("the keys of the Secret are %s, want %s", keys, test.want)
			}
		})
	}
}

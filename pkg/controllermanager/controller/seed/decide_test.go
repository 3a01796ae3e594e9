package seed

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// TestDecide checks which copies are created, changed and deleted.
func TestDecide(t *testing.T) {
	domain := func(name, key string) corev1.Secret {
		return corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name, UID: "1", Finalizers: []string{"a"},
				Labels:      map[string]string{constants.LabelGardenRole: constants.RoleDefaultDomain, "other": "label"},
				Annotations: map[string]string{constants.AnnotationDNSDomain: name, corev1.LastAppliedConfigAnnotation: "{}"}},
			Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"key": []byte(key)},
		}
	}
	names := func(secrets []corev1.Secret) (found []string) {
		for _, each := range secrets {
			if each.Namespace != "seed-one" {
				t.Errorf("Secret %s is written to namespace %s", each.Name, each.Namespace)
			}
			found = append(found, each.Name)
		}
		return found
	}
	fixed := copyOf("seed-one", domain("fixed", "1"))
	fixed.Immutable = ptr.To(true)
	same, changed, gone, typed := copyOf("seed-one", domain("same", "1")), copyOf("seed-one", domain("changed", "1")), copyOf("seed-one", domain("gone", "1")), copyOf("seed-one", domain("typed", "1"))
	typed.Type = "other"
	ending := domain("ending", "1")
	ending.DeletionTimestamp = &metav1.Time{}
	needed := decide("seed-one", []corev1.Secret{domain("new", "1"), domain("same", "1"), domain("changed", "2"), domain("typed", "1"), domain("fixed", "2"), ending},
		[]corev1.Secret{same, changed, gone, typed, fixed})
	for what, pair := range map[string][2][]string{
		"created": {names(needed.create), {"new"}}, "updated": {names(needed.update), {"changed"}}, "deleted": {names(needed.remove), {"typed", "fixed", "gone"}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
		}
	}
	made := needed.create[0]
	if len(made.Finalizers) > 0 || made.UID != "" || len(made.Labels) != 2 || len(made.Annotations) != 1 || string(made.Data["key"]) != "1" {
		t.Errorf("the copy is %+v", made)
	}
	if rest := decide("seed-one", []corev1.Secret{domain("same", "1")}, []corev1.Secret{same}); len(rest.create)+len(rest.update)+len(rest.remove) > 0 {
		t.Errorf("at rest: %+v", rest)
	}
}

// TestCopied checks which roles of Secrets are copied.
func TestCopied(t *testing.T) {
	for role, want := range map[string]bool{
		constants.RoleDefaultDomain: true, constants.RoleInternalDomain: true, constants.RoleAlerting: true, constants.RoleGlobalMonitoring: true,
		constants.RoleControlPlaneWildcardCert: true, constants.RoleCACluster: false, constants.RoleSSHKeyPair: false, constants.RoleMonitoring: false,
		constants.RoleHelmPullSecret: false, constants.RoleOCICABundle: false, constants.RoleResourceReference: false,
	} {
		if got := copied().Matches(labels.Set{constants.LabelGardenRole: role}); got != want {
			t.Errorf("role %s: copied is %t", role, got)
		}
	}
	if copied().Matches(labels.Set{"other": "label"}) {
		t.Error("a Secret without a role is copied")
	}
}

// TestAdopt checks which existing namespaces become those of a Seed.
func TestAdopt(t *testing.T) {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "1"}}
	other := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "2"}} // with the same name, deleted before
	role := map[string]string{constants.LabelGardenRole: constants.RoleSeed}
	for name, test := range map[string]struct {
		owner            *corev1beta1.Seed
		labels           map[string]string
		changed, foreign bool
	}{
		"own":                    {owner: seed, labels: role},
		"own without its label":  {owner: seed, changed: true},
		"of an earlier Seed":     {owner: other, labels: role, foreign: true},
		"labelled by operator":   {labels: role, changed: true},
		"of somebody else":       {foreign: true},
		"with the role of other": {labels: map[string]string{constants.LabelGardenRole: constants.RoleProject}, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "seed-one", Labels: test.labels}}
			if test.owner != nil {
				namespace.OwnerReferences = namespaceOf(test.owner).OwnerReferences
			}
			changed, err := adopt(namespace, seed)
			if changed != test.changed || (err != nil) != test.foreign {
				t.Fatalf("changed %t, error %v", changed, err)
			}
			if err == nil && (!metav1.IsControlledBy(namespace, seed) || namespace.Labels[constants.LabelGardenRole] != constants.RoleSeed) {
				t.Errorf("the namespace is %+v", namespace)
			}
		})
	}
}

// TestReduce checks that the cache has no contents of Secrets of other namespaces.
func TestReduce(t *testing.T) {
	for namespace, kept := range map[string]bool{"garden": true, "seed-one": true, "garden-dev": false, "shoot--a--b": false} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Data: map[string][]byte{"a": []byte("b")}}
		if _, err := reduce(secret); err != nil || (secret.Data != nil) != kept {
			t.Errorf("%s: %+v, %v", namespace, secret, err)
		}
	}
}

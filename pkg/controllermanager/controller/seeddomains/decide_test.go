package seeddomains

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

func TestDecide(t *testing.T) {
	domain := func(name, key string) corev1.Secret {
		return corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name, UID: "1", Finalizers: []string{"a"},
				Labels:      map[string]string{constants.LabelGardenRole: constants.RoleDefaultDomain, "other": "label"},
				Annotations: map[string]string{constants.AnnotationDNSDomain: name, "other": "annotation"}},
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
	same, changed, gone, typed := copyOf("seed-one", domain("same", "1")), copyOf("seed-one", domain("changed", "1")), copyOf("seed-one", domain("gone", "1")), copyOf("seed-one", domain("typed", "1"))
	typed.Type = "other"
	ending := domain("ending", "1")
	ending.DeletionTimestamp = &metav1.Time{}
	needed := decide("seed-one", []corev1.Secret{domain("new", "1"), domain("same", "1"), domain("changed", "2"), domain("typed", "1"), ending},
		[]corev1.Secret{same, changed, gone, typed})
	for what, pair := range map[string][2][]string{
		"created": {names(needed.create), {"new"}}, "updated": {names(needed.update), {"changed"}}, "deleted": {names(needed.remove), {"typed", "gone"}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
		}
	}
	made := needed.create[0]
	if len(made.Finalizers) > 0 || made.UID != "" || len(made.Labels) != 1 || len(made.Annotations) != 1 || string(made.Data["key"]) != "1" {
		t.Errorf("the copy is %+v", made)
	}
	if rest := decide("seed-one", []corev1.Secret{domain("same", "1")}, []corev1.Secret{same}); len(rest.create)+len(rest.update)+len(rest.remove) > 0 {
		t.Errorf("at rest: %+v", rest)
	}
}

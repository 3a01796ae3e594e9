package extensionclusterrole

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

func account(namespace, name, app string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}}
}

// TestDecide checks which ServiceAccounts a ClusterRole is bound to.
func TestDecide(t *testing.T) {
	t.Parallel()
	accounts := []metav1.PartialObjectMetadata{
		account("seed-b", "extension", "dns"), account("seed-a", "extension", "dns"), account("seed-a", "other", "other"),
		account("garden-dev", "robot", "dns"), account("garden-dev", "extension-shoot--dev--a--dns", "dns"), account("garden", "extension-shoot--a--b", "dns"),
		account("kube-system", "extension-shoot--a--b", "dns"), account("gardener", "extension-shoot--a--b", "dns"),
	}
	for selector, want := range map[string]string{
		`{"matchLabels":{"app":"dns"}}`:                                            "garden-dev/extension-shoot--dev--a--dns garden/extension-shoot--a--b seed-a/extension seed-b/extension",
		`{"matchExpressions":[{"key":"app","operator":"NotIn","values":["dns"]}]}`: "seed-a/other",
		`{"matchLabels":{"app":"none"}}`:                                           "",
		`{"matchExpressions":[{"key":"app","operator":"Like","values":["dns"]}]}`:  "error: the annotation",
		`matchLabels: {app: dns}`:                                                  "error: the annotation",
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: "dns", UID: "1", Annotations: map[string]string{constants.AnnotationExtensionsServiceAccountSelector: selector},
		}}
		binding, err := Decide(role, accounts)
		if message, isError := strings.CutPrefix(want, "error: "); isError {
			if err == nil || !strings.HasPrefix(err.Error(), message) {
				t.Errorf("%s: %v", selector, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		var got []string
		for _, subject := range binding.Subjects {
			got = append(got, subject.Namespace+"/"+subject.Name)
		}
		if strings.Join(got, " ") != want || binding.Name != "dns" || binding.RoleRef.Name != "dns" || fmt.Sprint(binding.OwnerReferences[0].UID) != "1" {
			t.Errorf("%s: %+v, want %s", selector, binding, want)
		}
	}
	if _, err := Decide(&rbacv1.ClusterRole{}, accounts); err == nil {
		t.Error("a ClusterRole without a selector is bound")
	}
}

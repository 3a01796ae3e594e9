package resourcesize

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
)

func limit(group, version, plural, size string) v1alpha1.ResourceLimit {
	return v1alpha1.ResourceLimit{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{plural}, Size: ptr.To(resource.MustParse(size)),
	}
}

func TestLimitFor(t *testing.T) {
	limits := []v1alpha1.ResourceLimit{
		limit("core.gardener.cloud", "v1beta1", "shoots", "1"), limit("core.gardener.cloud", "*", "*", "2"), limit("*", "v1", "secrets", "3"),
	}
	for name, test := range map[string]struct {
		asked metav1.GroupVersionResource
		want  string
	}{
		"the first that matches":      {metav1.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}, "1"},
		"all versions":                {metav1.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1", Resource: "shoots"}, "2"},
		"all resources":               {metav1.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "seeds"}, "2"},
		"all groups":                  {metav1.GroupVersionResource{Version: "v1", Resource: "secrets"}, "3"},
		"without a limit":             {metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, ""},
		"a version without one":       {metav1.GroupVersionResource{Version: "v2", Resource: "secrets"}, ""},
		"a subresource of its own":    {metav1.GroupVersionResource{Group: "x", Version: "v1", Resource: "secrets/x"}, ""},
		"a group that is similar":     {metav1.GroupVersionResource{Group: "core.gardener", Version: "v1beta1", Resource: "shoots"}, ""},
		"the resource of the request": {metav1.GroupVersionResource{Version: "v1", Resource: "secrets"}, "3"},
	} {
		got := limitFor(limits, &admissionv1.AdmissionRequest{RequestResource: &test.asked})
		if got == nil && test.want != "" || got != nil && got.Size.String() != test.want {
			t.Errorf("%s: got %v, want %q", name, got, test.want)
		}
	}
}

func TestUnrestricted(t *testing.T) {
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name} }
	person := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }
	account := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "garden", Name: name}
	}
	gardenlet := authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"}}
	robot := authenticationv1.UserInfo{Username: "system:serviceaccount:garden:robot", Groups: []string{"system:serviceaccounts"}}
	stranger := authenticationv1.UserInfo{Username: "system:serviceaccount:garden-dev:robot"}
	for name, test := range map[string]struct {
		subject rbacv1.Subject
		user    authenticationv1.UserInfo
		want    bool
	}{
		"a group":                            {group("gardener.cloud:system:seeds"), gardenlet, true},
		"another group":                      {group("x"), gardenlet, false},
		"all groups":                         {group("*"), gardenlet, true},
		"a user":                             {person("gardener.cloud:system:seed:a"), gardenlet, true},
		"all users":                          {person("*"), gardenlet, true},
		"another user":                       {person("x"), gardenlet, false},
		"an account":                         {account("robot"), robot, true},
		"all accounts of a namespace":        {account("*"), robot, true},
		"an account of another namespace":    {account("*"), stranger, false},
		"an account is not a user":           {person("*"), robot, false},
		"an account does not count by group": {group("system:serviceaccounts"), robot, false},
	} {
		if got := unrestricted([]rbacv1.Subject{test.subject}, test.user); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestTooLarge(t *testing.T) {
	small := `{"kind":"Shoot","metadata":{"name":"a"}}`
	status := `{"kind":"Shoot","metadata":{"managedFields":[{"manager":"` + strings.Repeat("x", 100) + `"}],"name":"a"},"status":{"x":"` + strings.Repeat("x", 100) + `"}}`
	for name, test := range map[string]struct {
		size, object string
		want         bool
	}{
		"as large as allowed":                   {"40", small, false},
		"one byte too large":                    {"39", small, true},
		"status and managedFields do not count": {"40", status, false},
		"nothing allowed":                       {"0", small, true},
	} {
		why, err := tooLarge(ptr.To(limit("", "", "", test.size)), []byte(test.object))
		if err != nil || (why != "") != test.want {
			t.Errorf("%s: got %q, %v", name, why, err)
		}
	}
	if _, err := tooLarge(ptr.To(limit("", "", "", "1")), []byte("{")); err == nil {
		t.Error("an object that is not JSON has a size")
	}
}

package updaterestriction

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
)

func TestAllowed(t *testing.T) {
	const create, update, remove = admissionv1.Create, admissionv1.Update, admissionv1.Delete
	for name, test := range map[string]struct {
		user    authenticationv1.UserInfo
		allowed []admissionv1.Operation
	}{
		"a gardenlet": {
			authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"}},
			[]admissionv1.Operation{create, update, remove},
		},
		"a gardenlet of a self-hosted Shoot": {
			authenticationv1.UserInfo{Username: "gardener.cloud:system:shoot:a:b", Groups: []string{"gardener.cloud:system:shoots"}},
			[]admissionv1.Operation{create, update, remove},
		},
		"the garbage collector":     {authenticationv1.UserInfo{Username: garbageCollector}, []admissionv1.Operation{remove}},
		"the internal account":      {authenticationv1.UserInfo{Username: internalAccount}, []admissionv1.Operation{update}},
		"an administrator":          {authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}}, nil},
		"a user named like a group": {authenticationv1.UserInfo{Username: "gardener.cloud:system:seeds"}, nil},
	} {
		for _, operation := range []admissionv1.Operation{create, update, remove} {
			want := false
			for _, one := range test.allowed {
				want = want || one == operation
			}
			if got := allowed(test.user, operation); got != want {
				t.Errorf("%s, %s: got %v, want %v", name, operation, got, want)
			}
		}
	}
}

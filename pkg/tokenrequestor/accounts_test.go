package tokenrequestor

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestRecheckAccount checks which changes of ServiceAccounts trigger a reconcile.
func TestRecheckAccount(t *testing.T) {
	source, account := types.NamespacedName{Namespace: "shoot--a--b", Name: "web"}, types.NamespacedName{Namespace: "kube-system", Name: "web"}
	for name, test := range map[string]struct {
		known, uid types.UID
		account    string
		want       bool
	}{
		"unchanged":                   {"1", "1", "web", false},
		"deleted":                     {"1", "", "web", true},
		"replaced":                    {"1", "2", "web", true},
		"changed while it is checked": {"", "2", "web", true},
		"another one":                 {"1", "2", "other", false},
	} {
		var m memories
		m.update(source, func(known *memory) { known.account, known.accountUID, known.version = account, test.known, "7" })
		got := m.recheckAccount(types.NamespacedName{Namespace: "kube-system", Name: test.account}, test.uid)
		if slices.Contains(got, source) != test.want || m.update(source, func(*memory) {}).recheck != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

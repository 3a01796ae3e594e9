package rotation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestEncryption follows changes of what is encrypted: a resource is readable in both forms by all replicas before the new form is written, and
// until all of its objects are rewritten.
func TestEncryption(t *testing.T) {
	secrets := []string{"secrets"}
	more := []string{"configmaps", "secrets"}
	for name, test := range map[string]struct {
		wanted, before []string
		reported       bool
		rotated        bool
		done           []string
		want           string
	}{
		"new cluster":            {more, secrets, false, false, nil, "encrypts [configmaps secrets], reads [], tasks []"},
		"no change":              {secrets, secrets, true, false, nil, "encrypts [secrets], reads [], tasks []"},
		"added":                  {more, secrets, true, false, nil, "encrypts [secrets], reads [configmaps], tasks [distribute-encryption-of-configmaps=key rewrite-configmaps=key]"},
		"added, readable":        {more, secrets, true, false, []string{"distribute-encryption-of-configmaps"}, "encrypts [configmaps secrets], reads [], tasks [distribute-encryption-of-configmaps=key rewrite-configmaps=key]"},
		"removed":                {secrets, more, true, false, nil, "encrypts [secrets], reads [configmaps], tasks [distribute-encryption-of-configmaps=plain rewrite-configmaps=plain]"},
		"removed and rewritten":  {secrets, more, true, false, []string{"rewrite-configmaps"}, "encrypts [secrets], reads [], tasks [distribute-encryption-of-configmaps=plain rewrite-configmaps=plain]"},
		"another key":            {secrets, secrets, true, true, nil, "encrypts [secrets], reads [], tasks [rewrite-secrets=key]"},
		"another key, and added": {more, secrets, true, true, nil, "encrypts [secrets], reads [configmaps], tasks [distribute-encryption-of-configmaps=key rewrite-configmaps=key rewrite-secrets=key]"},
	} {
		e := Encryption{
			Wanted: test.wanted, Before: test.before, Reported: test.reported, Rotated: test.rotated, Key: "key",
			Done: func(task flow.Task) bool { return slices.Contains(test.done, task.Name) },
		}
		var tasks []string
		if test.reported {
			for _, task := range append(e.Readables(), e.Rewrites()...) {
				tasks = append(tasks, task.Name+"="+task.Value)
			}
		}
		if got := fmt.Sprintf("encrypts %v, reads %v, tasks %v", e.Encrypting(), e.Decrypting(), tasks); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if tasks := (Encryption{Wanted: more, Before: secrets, Reported: true}).Readables(); tasks != nil {
		t.Errorf("without a key: %v", tasks)
	}
}

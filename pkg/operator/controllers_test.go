package operator

import (
	"strings"
	"testing"
)

// TestControllers checks that the controllers can share one cache, that their names are unique, and that each can be added.
func TestControllers(t *testing.T) {
	all := Controllers()
	if _, err := all.Cache(); err != nil {
		t.Error(err)
	}
	for _, namespaced := range []bool{false, true} {
		text, err := all.RightsYAML(namespaced)
		if secrets := strings.Contains(string(text), "- secrets\n"); err != nil || secrets != namespaced {
			t.Errorf("%v, rights of Secrets %t, although only those in the namespace are needed", err, secrets)
		}
	}
	names := map[string]bool{}
	for _, one := range all {
		if names[one.Name] || one.Add == nil || len(one.Rights) == 0 {
			t.Errorf("the controller %q has the name of another one, or lacks Add or rights", one.Name)
		}
		names[one.Name] = true
	}
}

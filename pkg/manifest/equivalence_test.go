package manifest

import (
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestEquivalences(t *testing.T) {
	key := func(group, kind string) object.Key {
		return object.Key{Group: group, Kind: kind, Namespace: "a", Name: "x"}
	}
	own := NewEquivalences([][]resourcesv1alpha1.GroupKind{
		{{Group: "old.example.com", Kind: "Widget"}, {Group: "new.example.com", Kind: "Gadget"}},
		{{Group: "new.example.com", Kind: "Gadget"}, {Group: "newest.example.com", Kind: "Gadget"}},
		{{Group: "example.com", Kind: "Deployment"}, {Group: "extensions", Kind: "Deployment"}},
	})
	for name, test := range map[string]struct {
		a, b object.Key
		want bool
	}{
		"built in":              {key("extensions", "Deployment"), key("apps", "Deployment"), true},
		"built in, networking":  {key("extensions", "Ingress"), key("networking.k8s.io", "Ingress"), true},
		"other kinds":           {key("apps", "Deployment"), key("apps", "DaemonSet"), false},
		"own":                   {key("old.example.com", "Widget"), key("new.example.com", "Gadget"), true},
		"sets share a member":   {key("old.example.com", "Widget"), key("newest.example.com", "Gadget"), true},
		"joined with built in":  {key("example.com", "Deployment"), key("apps", "Deployment"), true},
		"a group without a set": {key("example.org", "Widget"), key("old.example.com", "Widget"), false},
	} {
		if got := own.Identity(test.a) == own.Identity(test.b); got != test.want {
			t.Errorf("%s: Same returned %v, want %v", name, got, test.want)
		}
	}
}

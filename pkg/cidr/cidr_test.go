package cidr

import (
	"testing"

	"k8s.io/utils/ptr"
)

func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ours, theirs string
		want         bool
	}{
		{"10.0.0.0/8", "10.255.0.0/24", true}, {"10.0.0.0/24", "10.0.1.0/24", false}, {"fd00::/64", "fd00::1/128", true}, {"0.0.0.0/0", "fd00::/8", false},
	} {
		ours, err := Parse("shoot", map[string]*string{Pods: &test.ours, Nodes: nil, Services: ptr.To("")})
		if err != nil || len(ours) != 1 {
			t.Fatal(ours, err)
		}
		theirs, err := Parse("seed", map[string]*string{Services: &test.theirs})
		if err != nil {
			t.Fatal(err)
		}
		our, their, got := Overlap(ours, theirs)
		if got != test.want || got && (our.Use != Pods || their.Use != Services) {
			t.Errorf("%s and %s: %t (%v, %v)", test.ours, test.theirs, got, our, their)
		}
	}
	if _, err := Parse("shoot", map[string]*string{Pods: ptr.To("many")}); err == nil {
		t.Error("a text is a range")
	}
}

package decision

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestRegionsFor(t *testing.T) {
	configs := []*corev1.ConfigMap{
		regionConfig("first", "other, wanted ", map[string]string{"here": "there: 3\n", "broken": "- 1", "text": "there: far", "near": "near: 2"}),
		regionConfig("second", "wanted", map[string]string{"here": "there: 9\n", "only-second": "there: 1"}),
	}
	for name, test := range map[string]struct {
		profile, region string
		want            map[string]int
		fails           bool
	}{
		"the first one":            {"wanted", "here", map[string]int{"here": 0, "there": 3}, false},
		"another profile":          {"nobody", "here", nil, false},
		"only the first one":       {"wanted", "only-second", nil, false},
		"own region is configured": {"other", "near", map[string]int{"near": 2}, false},
		"a list":                   {"wanted", "broken", nil, true},
		"no number":                {"wanted", "text", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := RegionsFor(test.profile, test.region, configs)
			if !maps.Equal(got.Distances, test.want) || (got.Err != nil) != test.fails {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestNameDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"eu-west-1", "eu-west-1", 0}, {"eu-west-1", "eu-east-1", 2}, {"eu-west-1", "eu-west-2", 2}, {"eu-west-1", "eu-1", 5}, {"europe", "europa", 2},
		{"eu-west-1", "us-north-1", 6}, {"a", "", 2}, {"northwest", "north", 8}, {"westnorth", "north-1", 10},
	} {
		if got := NameDistance(test.a, test.b); got != test.want {
			t.Errorf("%s and %s: got %d, want %d", test.a, test.b, got, test.want)
		}
		if there, back := NameDistance(test.a, test.b), NameDistance(test.b, test.a); there != back {
			t.Errorf("%s and %s: %d there, %d back", test.a, test.b, there, back)
		}
	}
}

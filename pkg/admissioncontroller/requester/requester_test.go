package requester

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestOf(t *testing.T) {
	shoot := types.NamespacedName{Namespace: "garden-dev", Name: "one"}
	for name, test := range map[string]struct {
		user   string
		groups []string
		want   Requester
		not    bool
	}{
		"gardenlet of a Seed":           {user: "gardener.cloud:system:seed:a", groups: []string{"gardener.cloud:system:seeds"}, want: Requester{Gardenlet, "a", types.NamespacedName{}}},
		"without the group":             {user: "gardener.cloud:system:seed:a", groups: []string{"system:authenticated"}, not: true},
		"another user of the group":     {user: "alice", groups: []string{"gardener.cloud:system:seeds"}, not: true},
		"no Seed":                       {user: "gardener.cloud:system:seed:", groups: []string{"gardener.cloud:system:seeds"}, not: true},
		"not a name":                    {user: "gardener.cloud:system:seed:a/b", groups: []string{"gardener.cloud:system:seeds"}, not: true},
		"gardenlet of a Shoot":          {user: "gardener.cloud:system:shoot:garden-dev:one", groups: []string{"gardener.cloud:system:shoots"}, want: Requester{Gardenlet, "", shoot}},
		"gardenadm":                     {user: "gardener.cloud:gardenadm:shoot:garden-dev:one", groups: []string{"gardener.cloud:system:shoots"}, want: Requester{Gardenadm, "", shoot}},
		"a Shoot without a namespace":   {user: "gardener.cloud:system:shoot:one", groups: []string{"gardener.cloud:system:shoots"}, not: true},
		"extension of a Seed":           {user: "system:serviceaccount:seed-a:extension-x", groups: []string{"system:serviceaccounts:seed-a"}, want: Requester{Extension, "a", types.NamespacedName{}}},
		"another account of a Seed":     {user: "system:serviceaccount:seed-a:default", groups: []string{"system:serviceaccounts:seed-a"}, not: true},
		"a forged account":              {user: "system:serviceaccount:seed-a:extension-x", groups: []string{"system:serviceaccounts:seed-b"}, not: true},
		"extension of a Shoot":          {user: "system:serviceaccount:garden-dev:extension-shoot--one--x", groups: []string{"system:serviceaccounts:garden-dev"}, want: Requester{Extension, "", shoot}},
		"an account of another program": {user: "system:serviceaccount:default:extension-shoot--one--x", groups: []string{"system:serviceaccounts:default"}, not: true},
		"a person":                      {user: "alice", not: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := Of(test.user, test.groups)
			if is == test.not || is && got != test.want {
				t.Errorf("got %v (%v), want %v", got, is, test.want)
			}
		})
	}
}

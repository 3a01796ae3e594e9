package console

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestNearest(t *testing.T) {
	names := []string{"webshop-app", "webshop-base", "monitoring", "etcd-main", "etcd-events"}
	for wanted, want := range map[string][]string{
		"webshop-ap":  {"webshop-app", "webshop-base"},
		"webshpo-app": {"webshop-app"},
		"base":        {"webshop-base"},
		"etcd":        {"etcd-main", "etcd-events"},
		"xyz":         nil,
		"":            nil,
	} {
		if got := nearest(wanted, names); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", wanted, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"same", "same", 0}, {"ab", "ba", 2}} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestParseName(t *testing.T) {
	for text, want := range map[string]types.NamespacedName{
		"shop":        {Namespace: "here", Name: "shop"},
		"garden/shop": {Namespace: "garden", Name: "shop"},
		"mr/shop":     {Namespace: "here", Name: "shop"},
		"managedresource.resources.gardener.cloud/shop": {Namespace: "here", Name: "shop"},
		"managedresources/shop":                         {Namespace: "here", Name: "shop"},
	} {
		if got := ParseName(text, "here"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{{nil, 0}, {&NoError{}, 1}, {fmt.Errorf("x: %w", &NoError{"y"}), 1}, {errors.New("x"), 2}} {
		if got := ExitCode(test.err); got != test.want {
			t.Errorf("%v: %d, want %d", test.err, got, test.want)
		}
	}
}

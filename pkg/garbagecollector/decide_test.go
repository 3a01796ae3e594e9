package garbagecollector

import (
	"slices"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/references"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func aged(kind, namespace, name string, age time.Duration) candidate {
	return candidate{
		key: key{namespace: namespace, Reference: references.Reference{Kind: kind, Name: name}}, written: now.Add(-age),
	}
}

func texts(candidates []candidate) []string {
	var result []string
	for _, one := range candidates {
		result = append(result, one.String())
	}
	return result
}

func TestMature(t *testing.T) {
	going := aged("secret", "a", "going", time.Hour)
	going.deleting = true
	got := texts(mature([]candidate{
		aged("secret", "a", "old", time.Hour),
		aged("secret", "a", "ten-minutes", 10*time.Minute),
		aged("configmap", "a", "nearly-ten-minutes", 10*time.Minute-time.Second),
		aged("configmap", "a", "new", 0),
		aged("configmap", "a", "of-the-future", -time.Hour),
		going,
		{key: key{namespace: "a", Reference: references.Reference{Kind: "secret", Name: "undated"}}},
	}, now))
	if want := []string{"Secret a/old", "Secret a/ten-minutes", "Secret a/undated"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if mature(nil, now) != nil {
		t.Error("got a result for no input")
	}
}

func TestUnused(t *testing.T) {
	all := []candidate{
		aged("secret", "b", "x", time.Hour), aged("secret", "a", "y", time.Hour), aged("secret", "a", "x", time.Hour),
		aged("configmap", "b", "x", time.Hour), aged("configmap", "a", "x", time.Hour),
	}
	const configMap, secret = "reference.resources.gardener.cloud/configmap-12345678", "reference.resources.gardener.cloud/secret-12345678"
	for name, test := range map[string]struct {
		namespace   string
		annotations map[string]string
		want        []string
	}{
		"no reference":      {"a", nil, []string{"ConfigMap a/x", "ConfigMap b/x", "Secret a/x", "Secret a/y", "Secret b/x"}},
		"to a ConfigMap":    {"a", map[string]string{configMap: "x"}, []string{"ConfigMap b/x", "Secret a/x", "Secret a/y", "Secret b/x"}},
		"to a Secret":       {"a", map[string]string{secret: "x"}, []string{"ConfigMap a/x", "ConfigMap b/x", "Secret a/y", "Secret b/x"}},
		"to several":        {"a", map[string]string{secret: "x", configMap: "x", secret + "9": "y"}, []string{"ConfigMap b/x", "Secret b/x"}},
		"another namespace": {"c", map[string]string{secret: "x", configMap: "x"}, []string{"ConfigMap a/x", "ConfigMap b/x", "Secret a/x", "Secret a/y", "Secret b/x"}},
		"to nothing":        {"b", map[string]string{secret: "z", configMap: ""}, []string{"ConfigMap a/x", "ConfigMap b/x", "Secret a/x", "Secret a/y", "Secret b/x"}},
		"no annotation of references": {"b", map[string]string{"secret-12345678": "x", secret + "-": "x"},
			[]string{"ConfigMap a/x", "ConfigMap b/x", "Secret a/x", "Secret a/y", "Secret b/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			references := used{}
			references.add(test.namespace, test.annotations)
			if got := texts(unused(all, references)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestNextRun(t *testing.T) {
	for _, test := range []struct {
		failures         int
		syncPeriod, want time.Duration
	}{
		{1, time.Hour, 10 * time.Second},
		{2, time.Hour, 20 * time.Second},
		{5, time.Hour, 160 * time.Second},
		{9, time.Hour, 2560 * time.Second},
		{10, time.Hour, time.Hour},
		{20, 12 * time.Hour, 12 * time.Hour},
		{1000, 12 * time.Hour, 12 * time.Hour},
		{1 << 40, 1000 * time.Hour, 1000 * time.Hour},
		{2, 15 * time.Second, 15 * time.Second},
	} {
		if got := nextRun(test.failures, test.syncPeriod); got != test.want {
			t.Errorf("after %d failures, with the sync period %s: %s, want %s", test.failures, test.syncPeriod, got, test.want)
		}
	}
}

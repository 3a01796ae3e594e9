package references

import (
	"strings"
	"testing"
)

func TestAnnotationKey(t *testing.T) {
	// echo -n test-5678 | sha256sum
	const want = "reference.resources.gardener.cloud/configmap-4ed34879"
	if got := AnnotationKey(KindConfigMap, "test-5678"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := AnnotationKey(KindSecret, "test-5678"); got != strings.Replace(want, "configmap", "secret", 1) {
		t.Errorf("got %s for a Secret", got)
	}
}

func TestParse(t *testing.T) {
	const prefix = "reference.resources.gardener.cloud/"
	for name, test := range map[string]struct {
		key, value string
		want       Reference // none if empty
	}{
		"ConfigMap":                 {prefix + "configmap-82a3537f", "test-5678", Reference{"configmap", "test-5678"}},
		"Secret":                    {prefix + "secret-82a3537f", "test", Reference{"secret", "test"}},
		"own key":                   {AnnotationKey(KindSecret, "a"), "a", Reference{"secret", "a"}},
		"a hash that is none":       {prefix + "secret-x", "test", Reference{"secret", "test"}},
		"an empty hash":             {prefix + "secret-", "test", Reference{"secret", "test"}},
		"an empty name":             {prefix + "secret-82a3537f", "", Reference{}},
		"no hash":                   {prefix + "secret", "test", Reference{}},
		"two dashes":                {prefix + "secret-82a3-537f", "test", Reference{}},
		"a dash too many":           {prefix + "config-map-82a3537f", "test", Reference{}},
		"another kind":              {prefix + "deployment-82a3537f", "test", Reference{}},
		"no kind":                   {prefix + "-82a3537f", "test", Reference{}},
		"upper case":                {prefix + "Secret-82a3537f", "test", Reference{}},
		"another prefix":            {"resources.gardener.cloud/secret-82a3537f", "test", Reference{}},
		"a longer prefix":           {"x" + prefix + "secret-82a3537f", "test", Reference{}},
		"nothing":                   {"", "", Reference{}},
		"the prefix alone":          {prefix, "test", Reference{}},
		"a name of another hash":    {AnnotationKey(KindSecret, "a"), "b", Reference{"secret", "b"}},
		"a name that cannot exist":  {prefix + "secret-82a3537f", "a/b", Reference{"secret", "a/b"}},
		"blanks belong to the name": {prefix + "secret-82a3537f", " a", Reference{"secret", " a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Parse(test.key, test.value)
			if got != test.want || ok != (test.want != Reference{}) {
				t.Errorf("got %+v, %t, want %+v", got, ok, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("reference.resources.gardener.cloud/configmap-82a3537f", "test-5678")
	f.Add("reference.resources.gardener.cloud/secret-", "")
	f.Add("reference.resources.gardener.cloud/", "-")
	f.Fuzz(func(t *testing.T, key, value string) {
		got, ok := Parse(key, value)
		rest, prefixed := strings.CutPrefix(key, AnnotationKeyPrefix)
		parts := strings.Split(rest, "-")
		want := prefixed && value != "" && len(parts) == 2 && (parts[0] == KindConfigMap || parts[0] == KindSecret)
		if ok != want {
			t.Fatalf("Parse(%q, %q) is %t", key, value, ok)
		}
		if !ok {
			return
		}
		if got.Name != value || got.Kind != parts[0] {
			t.Fatalf("Parse(%q, %q) = %+v", key, value, got)
		}
		if again, ok := Parse(AnnotationKey(got.Kind, got.Name), got.Name); !ok || again != got {
			t.Fatalf("the reference %+v is read from its own annotation as %+v, %t", got, again, ok)
		}
	})
}

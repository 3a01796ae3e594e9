package tokenrequestor

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const accountKeys = "serviceaccount.resources.gardener.cloud/"

func annotated(more ...string) map[string]string {
	all := map[string]string{accountKeys + "name": "web", accountKeys + "namespace": "garden"}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func TestReadRequest(t *testing.T) {
	const target = "token-requestor.resources.gardener.cloud/target-secret-"
	for name, test := range map[string]struct {
		annotations map[string]string
		want        func(*tokenSpec)
		// objections are expected parts of the error.
		objections []string
	}{
		"the least": {annotated(), func(*tokenSpec) {}, nil},
		"all": {annotated(accountKeys+"labels", `{"some":"labels","foo":"bar"}`, accountKeys+"token-expiration-duration", "6h",
			accountKeys+"inject-ca-bundle", "true", target+"name", "foo", target+"namespace", "bar"), func(w *tokenSpec) {
			w.labels = map[string]string{"some": "labels", "foo": "bar"}
			w.lifetime, w.bundle, w.target = 6*time.Hour, true, types.NamespacedName{Namespace: "bar", Name: "foo"}
		}, nil},
		"whole seconds":            {annotated(accountKeys+"token-expiration-duration", "600.9s"), func(w *tokenSpec) { w.lifetime = 10 * time.Minute }, nil},
		"no truth":                 {annotated(accountKeys+"inject-ca-bundle", "yes"), func(*tokenSpec) {}, nil},
		"other truth":              {annotated(accountKeys+"inject-ca-bundle", "T"), func(w *tokenSpec) { w.bundle = true }, nil},
		"a target without a name":  {annotated(target+"namespace", "bar"), func(*tokenSpec) {}, nil},
		"a target with a name":     {annotated(target+"name", "bar"), func(*tokenSpec) {}, nil},
		"labels that are null":     {annotated(accountKeys+"labels", "null"), func(*tokenSpec) {}, nil},
		"nothing":                  {nil, nil, []string{accountKeys + "name is missing", accountKeys + "namespace is missing"}},
		"a path":                   {annotated(accountKeys+"name", "../x"), nil, []string{accountKeys + "name is not the name"}},
		"a namespace that is none": {annotated(accountKeys+"namespace", "a.b"), nil, []string{accountKeys + "namespace is not the namespace"}},
		"a target that is none":    {annotated(target+"name", "A/b", target+"namespace", "-"), nil, []string{target + "name is not", target + "namespace is not"}},
		"labels without quotes":    {annotated(accountKeys+"labels", "{some:labels}"), nil, []string{"not a JSON object of strings"}},
		"a list of labels":         {annotated(accountKeys+"labels", `["a"]`), nil, []string{"not a JSON object of strings"}},
		"a number as a label":      {annotated(accountKeys+"labels", `{"a":1}`), nil, []string{"not a JSON object of strings"}},
		"invalid labels": {annotated(accountKeys+"labels", `{"a b":"x","c":"d e"}`), nil,
			[]string{`"a b", which is not a valid label key`, `a value for "c"`}},
		"no duration":    {annotated(accountKeys+"token-expiration-duration", "soon"), nil, []string{"not a duration such as 6h"}},
		"too short":      {annotated(accountKeys+"token-expiration-duration", "599s"), nil, []string{"is 599s, but the API server issues tokens only for 10m0s to"}},
		"negative":       {annotated(accountKeys+"token-expiration-duration", "-12h"), nil, []string{"is -12h, but"}},
		"too long":       {annotated(accountKeys+"token-expiration-duration", "2000000h"), nil, []string{"is 2000000h, but"}},
		"absurd":         {annotated(accountKeys+"token-expiration-duration", "99999999999h"), nil, []string{"not a duration such as 6h"}},
		"several errors": {annotated(accountKeys+"token-expiration-duration", "0", accountKeys+"labels", "x"), nil, []string{"not a JSON", "is 0, but"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (Options{}).readTokenSpec(test.annotations)
			for _, objection := range test.objections {
				if err == nil || !strings.Contains(err.Error(), objection) {
					t.Errorf("got the error %v, want one with %s", err, objection)
				}
			}
			if test.objections != nil {
				return
			}
			want := tokenSpec{account: types.NamespacedName{Namespace: "garden", Name: "web"}, lifetime: 12 * time.Hour}
			test.want(&want)
			if err != nil || got.account != want.account || !maps.Equal(got.labels, want.labels) || got.lifetime != want.lifetime ||
				got.bundle != want.bundle || got.target != want.target {
				t.Errorf("got %+v and %v, want %+v", got, err, want)
			}
		})
	}
}

// TestAccountNamespace checks that the annotation is ignored if a namespace for all ServiceAccounts is configured.
func TestAccountNamespace(t *testing.T) {
	options := Options{AccountNamespace: "seed-one"}
	for _, namespace := range []string{"garden", "", "a/b"} {
		got, err := options.readTokenSpec(annotated(accountKeys+"namespace", namespace))
		if want := (types.NamespacedName{Namespace: "seed-one", Name: "web"}); err != nil || got.account != want {
			t.Errorf("annotation %q: got %s and %v, want %s", namespace, got.account, err, want)
		}
	}
}

// FuzzReadRequest checks that all accepted requests can be sent to an API server.
func FuzzReadRequest(f *testing.F) {
	f.Add("web", "garden", `{"a":"b"}`, "6h", "target", "bar")
	f.Add("", "a/b", `{"a b":1}`, "-1h", "..", "%2e")
	f.Add("a..b", "kube-system", "null", "9223372036854775807ns", "", "x")
	f.Fuzz(func(t *testing.T, name, namespace, labels, duration, targetName, targetNamespace string) {
		got, err := (Options{}).readTokenSpec(annotated(accountKeys+"name", name, accountKeys+"namespace", namespace, accountKeys+"labels", labels,
			accountKeys+"token-expiration-duration", duration,
			"token-requestor.resources.gardener.cloud/target-secret-name", targetName,
			"token-requestor.resources.gardener.cloud/target-secret-namespace", targetNamespace))
		if err != nil {
			return
		}
		if got.lifetime < minLifetime || got.lifetime > maxLifetime || got.lifetime%time.Second != 0 {
			t.Errorf("invalid lifetime %s", got.lifetime)
		}
		for _, part := range []string{got.account.Name, got.account.Namespace, "x" + got.target.Name, "x" + got.target.Namespace} {
			if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/% \n") {
				t.Errorf("invalid name %q", part)
			}
		}
		if got.synced() != (targetName != "" && targetNamespace != "") {
			t.Error("the target differs from the requested one")
		}
	})
}

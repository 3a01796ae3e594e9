package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// TestFilledFields checks that fields that a token requestor writes are not sent to an existing Secret, unless the manifest
// itself has their values.
func TestFilledFields(t *testing.T) {
	for name, test := range map[string]struct {
		fields string
		target bool
		want   string
	}{
		"nothing to fill":              {"data: {config: eA==}", false, ""},
		"a template":                   {"stringData: {kubeconfig: x, config: x}", false, "data/kubeconfig"},
		"empty keys":                   {"stringData: {token: '', bundle.crt: ''}", false, "data/token data/bundle.crt"},
		"values":                       {"stringData: {token: x, bundle.crt: x}", false, ""},
		"a template in a target":       {"stringData: {kubeconfig: x}", true, "data/kubeconfig"},
		"what nobody fills":            {"stringData: {kubeconfig: x}", false, ""},
		"no Secret with such a key":    {"data: {kubeconfig: x}", false, ""},
		"a Secret of another group":    {"data: {kubeconfig: x}", false, ""},
		"a target of another name too": {"stringData: {kubeconfig: x}", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kind, labels, marks := "v1\nkind: Secret", "{resources.gardener.cloud/purpose: token-requestor}", testMarks(nil)
			switch {
			case strings.HasPrefix(name, "no Secret"):
				kind = "v1\nkind: ConfigMap"
			case strings.HasPrefix(name, "a Secret of"):
				kind = "example.com/v1\nkind: Secret"
			case test.target || test.want == "":
				labels = "{}"
			}
			marks.TokenTargets = map[object.Key]bool{{Kind: "Secret", Namespace: "default", Name: "other"}: true}
			if test.target {
				marks.TokenTargets[object.Key{Kind: "Secret", Namespace: "default", Name: "a"}] = true
			}
			manifest := renderOne(t, "apiVersion: "+kind+"\nmetadata: {name: a, labels: "+labels+"}\n"+test.fields+"\n", marks)
			var got []string
			for _, field := range manifest.PreserveIfSet {
				got = append(got, strings.Join(field, "/"))
			}
			if !slices.Equal(got, strings.Fields(test.want)) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

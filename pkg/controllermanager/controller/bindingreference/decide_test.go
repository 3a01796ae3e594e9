package bindingreference

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/bindings"
)

// TestDecide writes labels and finalizers as texts: S and C are the marks of SecretBindings and CredentialsBindings, p-aws the label for
// the infrastructure aws; s and c are their finalizers, and old is that of old versions.
func TestDecide(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"S": "reference.gardener.cloud/secretbinding", "C": "reference.gardener.cloud/credentialsbinding", "p-aws": "provider.shoot.gardener.cloud/aws",
		"p-gcp": "provider.shoot.gardener.cloud/gcp", "s": "gardener.cloud/secretbinding", "c": "gardener.cloud/credentialsbinding",
		"old": "gardener.cloud/gardener", "gardener": "gardener", "mine": "mine",
	}
	read := func(text string) []string {
		var found []string
		for _, word := range strings.Fields(text) {
			found = append(found, names[word])
		}
		return found
	}
	use := func(by string, providers ...string) bindings.Use {
		found := bindings.Use{BySecretBinding: strings.Contains(by, "s"), ByCredentialsBinding: strings.Contains(by, "c"), Providers: map[string]bool{}}
		for _, one := range providers {
			found.Providers[one] = true
		}
		return found
	}
	for name, test := range map[string]struct {
		kind, labels, finalizers string
		use                      bindings.Use
		deleting                 bool
		wantLabels, want         string
	}{
		"nothing":                                   {bindings.Secret, "mine", "mine", use(""), false, "mine", "mine"},
		"labels of others for an infrastructure":    {bindings.Secret, "p-aws", "", use(""), false, "p-aws", ""},
		"a SecretBinding":                           {bindings.Secret, "mine", "mine", use("s", "aws"), false, "mine p-aws S", "mine s"},
		"a CredentialsBinding":                      {bindings.Secret, "", "", use("c", "aws"), false, "p-aws C", "c"},
		"both, for two infrastructures":             {bindings.Secret, "", "", use("sc", "aws", "gcp"), false, "p-aws p-gcp S C", "s c"},
		"as it should be":                           {bindings.Secret, "p-aws S", "s", use("s", "aws"), false, "p-aws S", "s"},
		"another infrastructure":                    {bindings.Secret, "p-aws S", "s", use("s", "gcp"), false, "p-gcp S", "s"},
		"the last SecretBinding is gone":            {bindings.Secret, "mine p-aws S", "mine s", use(""), false, "mine", "mine"},
		"one of both kinds is gone":                 {bindings.Secret, "p-aws p-gcp S C", "s c", use("c", "gcp"), false, "p-gcp C", "c"},
		"the label was removed by hand":             {bindings.Secret, "p-aws", "s", use(""), false, "", ""},
		"the finalizer was removed by hand":         {bindings.Secret, "p-aws S", "", use("s", "aws"), false, "p-aws S", "s"},
		"a deletion begins":                         {bindings.Secret, "p-aws S", "s", use("s", "aws"), true, "p-aws S", "s"},
		"no new finalizers in a deletion":           {bindings.Secret, "", "mine", use("s", "aws"), true, "p-aws S", "mine"},
		"no binding any more in a deletion":         {bindings.Secret, "p-aws S", "s", use(""), true, "", ""},
		"the finalizer of old versions":             {bindings.Secret, "", "old mine", use("s", "aws"), false, "p-aws S", "mine s"},
		"a WorkloadIdentity":                        {bindings.WorkloadIdentity, "", "", use("c", "aws"), false, "p-aws C", "c"},
		"an InternalSecret":                         {bindings.InternalSecret, "", "", use("c", "aws"), false, "p-aws C", "c"},
		"a Quota has only the marks":                {bindings.Quota, "mine", "gardener", use("sc", "aws"), false, "mine S C", "gardener"},
		"a Quota that no binding refers to":         {bindings.Quota, "mine S C", "gardener", use(""), false, "mine", "gardener"},
		"a Quota that one kind does not refer to":   {bindings.Quota, "S C", "gardener", use("c", "aws"), false, "C", "gardener"},
		"a SecretBinding without an infrastructure": {bindings.Secret, "", "", use("s"), false, "S", "s"},
	} {
		object := &metav1.ObjectMeta{Labels: map[string]string{}, Finalizers: read(test.finalizers)}
		if test.deleting {
			object.DeletionTimestamp = &metav1.Time{}
		}
		wantLabels := map[string]string{}
		for _, label := range read(test.labels) {
			object.Labels[label] = "true"
		}
		for _, label := range read(test.wantLabels) {
			wantLabels[label] = "true"
		}
		labels, finalizers := Decide(test.kind, object, test.use)
		if !maps.Equal(labels, wantLabels) || !slices.Equal(finalizers, read(test.want)) {
			t.Errorf("%s: labels %v and finalizers %v, want %v and %v", name, labels, finalizers, wantLabels, read(test.want))
		}
	}
}

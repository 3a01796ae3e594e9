package app

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestClusterIdentity(t *testing.T) {
	configMap := func(data map[string]string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"}, Data: data}
	}
	for name, test := range map[string]struct {
		configured string
		object     client.Object
		want, err  string
	}{
		"none":                    {"", nil, "", ""},
		"literal":                 {"seed-1", configMap(map[string]string{"cluster-identity": "other"}), "seed-1", ""},
		"cluster":                 {"<cluster>", configMap(map[string]string{"cluster-identity": "seed-1"}), "seed-1", ""},
		"cluster, no ConfigMap":   {"<cluster>", nil, "", "not found"},
		"cluster, no key":         {"<cluster>", configMap(nil), "", "no key"},
		"default":                 {"<default>", configMap(map[string]string{"cluster-identity": "seed-1"}), "seed-1", ""},
		"default, no ConfigMap":   {"<default>", nil, "", ""},
		"default, no key":         {"<default>", configMap(nil), "", ""},
		"an identity with colons": {"<default>", configMap(map[string]string{"cluster-identity": "a:b"}), "", "colon"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if test.object != nil {
				builder.WithObjects(test.object)
			}
			got, err := clusterIdentity(t.Context(), builder.Build(), test.configured)
			if got != test.want || (err != nil) != (test.err != "") {
				t.Fatalf("got %q, %v; want %q", got, err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q does not contain %q", err, test.err)
			}
		})
	}
}

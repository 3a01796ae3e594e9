package managedresource

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestAccountOf checks which ServiceAccount a ManagedResource has, depending on its namespace.
func TestAccountOf(t *testing.T) {
	const key = "resources.gardener.cloud/service-account-name"
	plain, restricted, empty := map[string]string{}, map[string]string{key: "robot"}, map[string]string{key: ""}
	for name, test := range map[string]struct {
		annotations map[string]string
		named       string
		want, err   string
	}{
		"none":                               {plain, "", "", ""},
		"named":                              {plain, "other", "shop/other", ""},
		"of another namespace":               {plain, "garden/other", "garden/other", ""},
		"of the namespace":                   {restricted, "", "shop/robot", ""},
		"of the namespace and named":         {restricted, "robot", "shop/robot", ""},
		"… with its namespace":               {restricted, "shop/robot", "shop/robot", ""},
		"another one":                        {restricted, "other", "", "must be robot or empty, not other: the annotation " + key + " of Namespace shop"},
		"same name in another namespace":     {restricted, "garden/robot", "", "permits no other account"},
		"an empty annotation":                {empty, "", "", "must not be empty"},
		"an empty annotation and an account": {empty, "other", "", "must not be empty"},
	} {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		mr.Spec.ServiceAccountName = test.named
		namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: test.annotations}}
		got, err := accountOf(mr, namespace)
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: the error is %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got.Name == "" && test.want != "", got.Name != "" && got.String() != test.want:
			t.Errorf("%s: got %s", name, got)
		}
	}
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	mr.Spec.ServiceAccountName = "garden/other"
	if got, err := accountOf(mr, nil); err != nil || got.String() != "garden/other" {
		t.Errorf("without Namespaces: %s, %v", got, err)
	}
}

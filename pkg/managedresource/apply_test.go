package managedresource

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// TestStepOf checks that the annotation takes precedence, and that a static token comes after its ServiceAccount.
func TestStepOf(t *testing.T) {
	manifest := func(kind string, wave int, annotations map[string]string) *object.Manifest {
		return &object.Manifest{
			Ref: object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}}, Directive: applyoptions.Options{Wave: wave}, Annotations: annotations,
		}
	}
	rbac := func(kind string, wave int) *object.Manifest {
		role := manifest(kind, wave, nil)
		role.Group = "rbac.authorization.k8s.io"
		return role
	}
	account := map[string]string{"kubernetes.io/service-account.name": "a"}
	for _, c := range []struct {
		name     string
		manifest *object.Manifest
		want     step
	}{
		{"by its kind", manifest("Secret", 0, nil), step{0, apply.WaveConfiguration}},
		{"as asked for", manifest("Secret", -3, nil), step{-3, apply.WaveConfiguration}},
		{"a static token", manifest("Secret", 2, account), step{2, apply.WaveWorkloads}},
		{"a ServiceAccount", manifest("ServiceAccount", 0, nil), step{0, apply.WaveConfiguration}},
		{"a Role", rbac("Role", 0), step{0, apply.WaveRoles}},
		{"a ClusterRole as asked for", rbac("ClusterRole", 7), step{7, apply.WaveRoles}},
		{"a RoleBinding", rbac("RoleBinding", 0), step{0, apply.WaveConfiguration}},
		{"a Role of another group", manifest("Role", 0, nil), step{0, apply.WaveConfiguration}},
		{"another kind with the annotation", manifest("ConfigMap", 0, account), step{0, apply.WaveConfiguration}},
	} {
		if got := stepOf(c.manifest); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

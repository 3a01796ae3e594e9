package gardenletrights

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// TestSwitch checks that the controller grants rights while it is on, and that it deletes what it has granted, and nothing else, when it
// is switched off.
func TestSwitch(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, served.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	seed.Spec.Backup = &corev1beta1.Backup{CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"}}
	foreign := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "foreign"}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed, foreign).Build()
	granted := Role("garden", "one", Grants{}).Name
	for _, step := range []struct {
		off  bool
		want []string
	}{{false, []string{"foreign", granted}}, {true, []string{"foreign"}}, {false, []string{"foreign", granted}}} {
		r := &reconciler{garden: garden, off: step.off}
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "garden"}}); err != nil {
			t.Fatal(err)
		}
		var roles rbacv1.RoleList
		var bindings rbacv1.RoleBindingList
		if err := garden.List(t.Context(), &roles); err != nil {
			t.Fatal(err)
		}
		if err := garden.List(t.Context(), &bindings); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, role := range roles.Items {
			names = append(names, role.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, step.want) || len(bindings.Items) != len(step.want)-1 {
			t.Errorf("off: %t: the Roles are %v with %d RoleBindings, want %v", step.off, names, len(bindings.Items), step.want)
		}
	}
}

package shoot

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-helpers/auth/rbac/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/shootnamespace"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rbac"
)

// checkBoundary checks that the account of the namespace applies all ManagedResources in it, and has the necessary
// permissions.
func checkBoundary(t *testing.T, bundle flow.Bundle) {
	t.Helper()
	if ptr.Deref(bundle.Spec.Class, "") != classSeed || bundle.Namespace == "garden" {
		if bundle.Spec.ServiceAccountName != "" {
			t.Errorf("%s is applied as %s", bundle.Key, bundle.Spec.ServiceAccountName)
		}
		return
	}
	if bundle.Spec.ServiceAccountName != shootnamespace.Account {
		t.Errorf("%s is applied as %q", bundle.Key, bundle.Spec.ServiceAccountName)
	}
	for _, object := range bundle.Objects {
		checkDeployable(t, knownKinds(), bundle.Namespace, object)
	}
}

// knownKinds returns a scheme with the kinds of all bundles.
var knownKinds = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(extensionsv1alpha1.AddToScheme(scheme))
	return scheme
})

// checkDeployable checks that the account of a namespace may deploy an object.
func checkDeployable(t *testing.T, scheme *runtime.Scheme, namespace string, object client.Object) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, each := range shootnamespace.Access(namespace, true, false) {
		if role, is := each.(*rbacv1.Role); is && role.Name == shootnamespace.Account {
			rules = role.Rules
		}
	}
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		t.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if kind.Kind == "Gateway" { // English is not that regular
		resource.Resource = "gateways"
	}
	wanted := []rbacv1.PolicyRule{{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: rbac.ForObjects()}}
	switch granting := object.(type) {
	case *rbacv1.Role:
		wanted = append(wanted, granting.Rules...)
	case *rbacv1.RoleBinding:
		if granting.RoleRef.Kind != "Role" {
			t.Errorf("RoleBinding %s grants %s", granting.Name, granting.RoleRef)
		}
	}
	if enough, missing := validation.Covers(rules, wanted); !enough || object.GetNamespace() != namespace {
		t.Errorf("%s %s/%s cannot be applied in namespace %s without %v", kind.Kind, object.GetNamespace(), object.GetName(), namespace, missing)
	}
}

// TestAccountDeploysEtcd checks that the account of the namespace may deploy what the etcd operator emits there.
func TestAccountDeploysEtcd(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "etcd", "testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found the files %v: %v", files, err)
	}
	scheme, kinds := knownKinds(), map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			found := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &found.Object); err != nil || found.GetKind() == "" {
				t.Fatalf("%s: %q: %v", file, document, err)
			}
			kinds[found.GetKind()] = true
			object, err := scheme.New(found.GroupVersionKind())
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, object)
			}
			if err != nil {
				t.Fatal(err)
			}
			checkDeployable(t, scheme, found.GetNamespace(), object.(client.Object)) //nolint:errcheck // all kinds are objects
		}
	}
	if !kinds["StatefulSet"] || !kinds["Role"] {
		t.Errorf("found only %v", kinds)
	}
}

// TestNamespaceNamesItsAccount checks that the annotation of the Namespace names an account that is in the same bundle,
// and that this account has permissions in no other namespace and cannot extend them.
func TestNamespaceNamesItsAccount(t *testing.T) {
	bundle := planOf(t, up(t)).Bundles[0]
	has := func(match func(client.Object) bool) bool { return slices.ContainsFunc(bundle.Objects, match) }
	if !has(func(object client.Object) bool {
		namespace, is := object.(*corev1.Namespace)
		return is && namespace.Annotations["resources.gardener.cloud/service-account-name"] == shootnamespace.Account
	}) || !has(func(object client.Object) bool {
		_, is := object.(*corev1.ServiceAccount)
		return is && object.GetName() == shootnamespace.Account && object.GetNamespace() == "shoot--dev--one"
	}) {
		t.Error("the bundle of the namespace has no account")
	}
	for _, object := range bundle.Objects {
		role, is := object.(*rbacv1.Role)
		if !is {
			continue
		}
		for _, rule := range role.Rules {
			for _, verb := range []string{"*", "bind", "escalate", "impersonate"} {
				if slices.Contains(rule.Verbs, verb) {
					t.Errorf("Role %s/%s allows %s", role.Namespace, role.Name, verb)
				}
			}
			if strings.Contains(strings.Join(append(rule.Resources, rule.APIGroups...), " "), "*") {
				t.Errorf("Role %s/%s allows %v", role.Namespace, role.Name, rule)
			}
		}
	}
}

package protection

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// users are objects that use others.
const users = `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {namespace: garden-dev, name: one}
spec: {cloudProfile: {kind: CloudProfile, name: profile}, exposureClassName: class, secretBindingName: secret, region: here}
---
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {namespace: garden-dev, name: two}
spec: {cloudProfile: {kind: NamespacedCloudProfile, name: profile}, credentialsBindingName: credentials}
---
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {namespace: garden-other, name: three}
spec: {cloudProfileName: old, exposureClassName: "", secretBindingName: secret}
---
apiVersion: core.gardener.cloud/v1beta1
kind: NamespacedCloudProfile
metadata: {namespace: garden-dev, name: profile}
spec: {parent: {kind: CloudProfile, name: parent}}
---
apiVersion: core.gardener.cloud/v1beta1
kind: SecretBinding
metadata: {namespace: garden-dev, name: secret}
quotas: [{name: near}, {namespace: garden, name: far}]
---
apiVersion: security.gardener.cloud/v1alpha1
kind: CredentialsBinding
metadata: {namespace: garden-dev, name: credentials}
quotas: [{namespace: garden, name: far}]
---
apiVersion: core.gardener.cloud/v1beta1
kind: ControllerRegistration
metadata: {name: registration}
spec: {deployment: {deploymentRefs: [{name: deployment}]}}
---
apiVersion: core.gardener.cloud/v1beta1
kind: ControllerInstallation
metadata: {name: installation}
spec: {registrationRef: {name: registration}}
`

// TestUsers checks which objects use an object.
func TestUsers(t *testing.T) {
	t.Parallel()
	reader := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects(t)...).Build()
	for _, test := range []struct {
		controller, namespace, name string
		want                        []string
	}{
		{"cloudprofile", "", "profile", []string{"Shoot garden-dev/one"}},
		{"cloudprofile", "", "parent", []string{"NamespacedCloudProfile garden-dev/profile"}},
		{"cloudprofile", "", "old", []string{"Shoot garden-other/three"}},
		{"cloudprofile", "", "", nil},
		{"namespacedcloudprofile", "garden-dev", "profile", []string{"Shoot garden-dev/two"}},
		{"namespacedcloudprofile", "garden-other", "profile", nil},
		{"exposureclass", "", "class", []string{"Shoot garden-dev/one"}},
		{"exposureclass", "", "", nil},
		{"secretbinding", "garden-dev", "secret", []string{"Shoot garden-dev/one"}},
		{"secretbinding", "garden-other", "secret", []string{"Shoot garden-other/three"}},
		{"secretbinding", "garden", "secret", nil},
		{"credentialsbinding", "garden-dev", "credentials", []string{"Shoot garden-dev/two"}},
		{"credentialsbinding", "garden-dev", "secret", nil},
		{"quota", "garden-dev", "near", []string{"SecretBinding garden-dev/secret"}},
		{"quota", "garden", "far", []string{"SecretBinding garden-dev/secret", "CredentialsBinding garden-dev/credentials"}},
		{"quota", "garden-dev", "far", nil},
		{"controllerdeployment", "", "deployment", []string{"ControllerRegistration registration"}},
		{"controllerregistration-finalizer", "", "registration", []string{"ControllerInstallation installation"}},
	} {
		got, err := rowOf(t, test.controller).usersOf(context.Background(), reader, types.NamespacedName{Namespace: test.namespace, Name: test.name})
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s %s/%s is used by %q, %v; want %q", test.controller, test.namespace, test.name, got, err, test.want)
		}
	}
}

// TestReduced checks that the cache keeps all references of users.
func TestReduced(t *testing.T) {
	t.Parallel()
	set := controller.Set{Controller()}
	kinds, err := set.Cache()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects(t) {
		for _, row := range table() {
			for _, user := range row.users {
				reduced := any(object)
				for of, options := range kinds {
					if reflect.TypeOf(of) == reflect.TypeOf(object) && options.Transform != nil {
						if reduced, err = options.Transform(object.DeepCopyObject()); err != nil {
							t.Fatal(err)
						}
					}
				}
				kept, ok := reduced.(client.Object)
				if !ok || !slices.Equal(user.refers(kept), user.refers(object)) {
					t.Errorf("the cached %T %s refers to other objects for %s", object, object.GetName(), row.controller)
				}
			}
		}
	}
}

// TestTable checks that each row has a configuration.
func TestTable(t *testing.T) {
	t.Parallel()
	config := &v1alpha1.ControllerManagerConfiguration{}
	v1alpha1.SetDefaults(config)
	for _, row := range table() {
		if row.configuration(&config.Controllers).ConcurrentSyncs == nil || row.finalizer == "" || len(row.users) == 0 {
			t.Errorf("the row %s is not complete", row.controller)
		}
	}
}

func rowOf(t *testing.T, name string) row {
	t.Helper()
	for _, row := range table() {
		if row.controller == name {
			return row
		}
	}
	t.Fatalf("there is no row %s", name)
	return row{}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := served.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func objects(t *testing.T) []client.Object {
	t.Helper()
	var found []client.Object
	for _, text := range strings.Split(users, "---\n") {
		meta := &runtime.TypeMeta{}
		if err := yaml.Unmarshal([]byte(text), meta); err != nil {
			t.Fatal(err)
		}
		object, err := scheme(t).New(meta.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Fatal(err)
		}
		typed, ok := object.(client.Object)
		if !ok {
			t.Fatalf("a %T has no metadata", object)
		}
		found = append(found, typed)
	}
	return found
}

package served_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// TestResources compares the list with Gardener's.
func TestResources(t *testing.T) {
	want := strings.Split(strings.TrimSpace(`
core.gardener.cloud/v1 controllerdeployments ControllerDeployment C [ctrldeploy] [] [] true
core.gardener.cloud/v1beta1 backupbuckets BackupBucket C [bbc] [status] [spec.seedName spec.shootRef.name spec.shootRef.namespace] true
core.gardener.cloud/v1beta1 backupentries BackupEntry N [bec] [status] [spec.seedName spec.bucketName spec.shootRef.name spec.shootRef.namespace] true
core.gardener.cloud/v1beta1 cloudprofiles CloudProfile C [cprofile cpfl] [status] [] false
core.gardener.cloud/v1beta1 controllerdeployments ControllerDeployment C [ctrldeploy] [] [] true
core.gardener.cloud/v1beta1 controllerinstallations ControllerInstallation C [ctrlinst] [status] [spec.registrationRef.name spec.seedRef.name spec.shootRef.name spec.shootRef.namespace] true
core.gardener.cloud/v1beta1 controllerregistrations ControllerRegistration C [ctrlreg] [] [] true
core.gardener.cloud/v1beta1 exposureclasses ExposureClass C [expclass expcls] [] [] false
core.gardener.cloud/v1beta1 internalsecrets InternalSecret N [ins] [] [type] false
core.gardener.cloud/v1beta1 namespacedcloudprofiles NamespacedCloudProfile N [nsprofile nscpfl] [status] [] false
core.gardener.cloud/v1beta1 projects Project C [] [status] [spec.namespace] false
core.gardener.cloud/v1beta1 quotas Quota N [squota] [] [] false
core.gardener.cloud/v1beta1 secretbindings SecretBinding N [sb] [] [] false
core.gardener.cloud/v1beta1 seeds Seed C [] [status] [] false
core.gardener.cloud/v1beta1 shoots Shoot N [] [adminkubeconfig binding status viewerkubeconfig] [spec.seedName status.seedName spec.cloudProfileName spec.cloudProfile.Name spec.cloudProfile.Kind] true
core.gardener.cloud/v1beta1 shootstates ShootState N [] [] [] true
operations.gardener.cloud/v1alpha1 bastions Bastion N [] [status] [spec.seedName spec.shootRef.name] true
security.gardener.cloud/v1alpha1 credentialsbindings CredentialsBinding N [cb] [] [] false
security.gardener.cloud/v1alpha1 workloadidentities WorkloadIdentity N [wi] [token] [] false
seedmanagement.gardener.cloud/v1alpha1 gardenlets Gardenlet N [gl glet] [status] [] false
seedmanagement.gardener.cloud/v1alpha1 managedseeds ManagedSeed N [ms] [status] [spec.shoot.name] false
seedmanagement.gardener.cloud/v1alpha1 managedseedsets ManagedSeedSet N [mss] [scale status] [] false
settings.gardener.cloud/v1alpha1 clusteropenidconnectpresets ClusterOpenIDConnectPreset C [coidcps] [] [] false
settings.gardener.cloud/v1alpha1 openidconnectpresets OpenIDConnectPreset N [oidcps] [] [] false`), "\n")
	var got []string
	for _, one := range served.Resources() {
		scope := "C"
		if one.Namespaced {
			scope = "N"
		}
		got = append(got, fmt.Sprint(one.GroupVersion(), " ", one.Name, " ", one.Kind, " ", scope, " ", one.ShortNames, " ", one.Subresources, " ", one.Fields, " ", one.InAll))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestKindsAreServed checks that each kind with a list type is a resource, and that the fields of selectors exist.
func TestKindsAreServed(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := served.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kinds := sets.New[string]()
	for _, resource := range served.Resources() {
		kinds.Insert(resource.String())
		of, found := scheme.AllKnownTypes()[resource.GroupVersionKind]
		if !found {
			t.Errorf("%s is not a kind of the scheme", resource.GroupVersionKind)
			continue
		}
		for _, path := range resource.Fields {
			if !has(of, strings.Split(path, ".")) {
				t.Errorf("%s has no field %s", resource.Kind, path)
			}
		}
	}
	for _, kind := range slices.Collect(maps.Keys(scheme.AllKnownTypes())) {
		single := kind.GroupVersion().WithKind(strings.TrimSuffix(kind.Kind, "List"))
		if strings.Contains(scheme.AllKnownTypes()[kind].PkgPath(), "/trellis/") && single != kind && !kinds.Has(single.String()) {
			t.Errorf("%s is not served", single)
		}
	}
}

func has(of reflect.Type, path []string) bool {
	for _, name := range path {
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		field, found := of.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
		if !found {
			return false
		}
		of = field.Type
	}
	return true
}

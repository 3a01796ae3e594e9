package crds

import (
	"io/fs"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/config/crd"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape/build"
)

// namesOf returns the names of the definitions in some groups, and checks their common properties.
func namesOf(t *testing.T, groups ...Group) []string {
	t.Helper()
	objects, err := Objects(Values{Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		definition, isUnstructured := object.(*unstructured.Unstructured)
		if !isUnstructured || definition.GetKind() != "CustomResourceDefinition" || definition.GetAPIVersion() != "apiextensions.k8s.io/v1" {
			t.Fatalf("got %v, want a CustomResourceDefinition", object)
		}
		if definition.GetAnnotations()[resourcesv1alpha1.AnnotationKeepObject] != "true" {
			t.Errorf("%s is not kept when its ManagedResource is deleted", definition.GetName())
		}
		group, _, err := unstructured.NestedString(definition.Object, "spec", "group")
		if err != nil {
			t.Fatal(err)
		}
		wantProtection := group == "extensions.gardener.cloud" || group == "druid.gardener.cloud"
		if protected := definition.GetLabels()[constants.LabelDeletionProtected] == "true"; protected != wantProtection {
			t.Errorf("%s is protected: %t, want %t", definition.GetName(), protected, wantProtection)
		}
		names = append(names, strings.TrimSuffix(definition.GetName(), "."+group))
	}
	return names
}

func TestGroups(t *testing.T) {
	for group, want := range map[Group]string{
		ManagedResources: "managedresources",
		Extensions:       "backupbuckets backupentries dnsrecords extensions",
		ShootExtensions: "bastions clusters containerruntimes controlplanes infrastructures networks operatingsystemconfigs " +
			"selfhostedshootexposures workers",
		Etcd:                  "etcdcopybackupstasks etcds",
		Machines:              "machineclasses machinedeployments machines machinesets",
		VerticalPodAutoscaler: "verticalpodautoscalercheckpoints verticalpodautoscalers",
		Istio: "wasmplugins destinationrules envoyfilters gateways proxyconfigs serviceentries sidecars virtualservices workloadentries workloadgroups " +
			"authorizationpolicies peerauthentications requestauthentications telemetries",
		GatewayAPI: "backendtlspolicies gatewayclasses gateways grpcroutes httproutes listenersets referencegrants tlsroutes",
	} {
		if got := strings.Join(namesOf(t, group), " "); got != want {
			t.Errorf("group %s: got %s, want %s", group, got, want)
		}
	}
	if len(groups) != 8 {
		t.Errorf("found %d groups, but this test covers 8", len(groups))
	}
	if _, err := Objects(Values{Groups: []Group{"Nothing"}}); err == nil || !strings.Contains(err.Error(), `"Nothing"`) {
		t.Errorf("an unknown group: got the error %v", err)
	}
}

// TestCopiedDefinitions checks that the copied definitions are from the version of the module that the programs are built with.
func TestCopiedDefinitions(t *testing.T) {
	for directory, from := range map[string]struct{ module, pinned string }{
		"autoscaling": {"k8s.io/autoscaler/vertical-pod-autoscaler", "test/landscape/binaries/vpa"},
		"istio":       {"istio.io/api", "hack/crds/modules"}, "gatewayapi": {"sigs.k8s.io/gateway-api", "hack/crds/modules"},
	} {
		version, err := build.Version("../../..", from.pinned, from.module)
		if err != nil {
			t.Fatal(err)
		}
		files, err := fs.Glob(crd.Files, directory+"/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("found %v, %v", files, err)
		}
		for _, file := range files {
			content, err := fs.ReadFile(crd.Files, file)
			if err != nil {
				t.Fatal(err)
			}
			if first, _, _ := strings.Cut(string(content), "\n"); !strings.Contains(first, from.module+" "+version+" ") {
				t.Errorf("%s begins with %q, want the version %s: run make generate", file, first, version)
			}
		}
	}
}

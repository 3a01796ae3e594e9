package installation

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// TestInstallation checks the name, labels and references of a new installation.
func TestInstallation(t *testing.T) {
	in := emptySeed()
	in.registration("base").Annotations = map[string]string{constants.AnnotationPodSecurityEnforce: "baseline", "other": "annotation"}
	i := mustInstall(t, in, "base")
	if !strings.HasPrefix(i.Name, "base-") || len(i.Name) != len("base-")+nameHashLength || mustInstall(t, in, "base").Name != i.Name {
		t.Errorf("the name is %q", i.Name)
	}
	for _, label := range []string{LabelSeedSpecHash, LabelRegistrationSpecHash, LabelDeploymentHash} {
		if len(i.Labels[label]) != hashLength {
			t.Errorf("label %s is %q", label, i.Labels[label])
		}
	}
	if want := map[string]string{constants.AnnotationPodSecurityEnforce: "baseline"}; !reflect.DeepEqual(i.Annotations, want) {
		t.Errorf("the annotations are %v", i.Annotations)
	}
	const version = "core.gardener.cloud/v1beta1"
	for _, ref := range []struct{ got, want corev1.ObjectReference }{
		{i.Spec.RegistrationRef, corev1.ObjectReference{APIVersion: version, Kind: "ControllerRegistration", Name: "base", ResourceVersion: "20"}},
		{*i.Spec.SeedRef, corev1.ObjectReference{APIVersion: version, Kind: "Seed", Name: "one", ResourceVersion: "10"}},
		{*i.Spec.DeploymentRef, corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1", Kind: "ControllerDeployment", Name: "base", ResourceVersion: "25"}},
	} {
		if ref.got != ref.want {
			t.Errorf("got reference %+v, want %+v", ref.got, ref.want)
		}
	}
}

// TestNames checks that the namespace of an extension fits into a label, and that objects that were created again with the same
// name have other installations.
func TestNames(t *testing.T) {
	in := emptySeed()
	r := registration(strings.Repeat("a", 63))
	name := nameOf(r, in.Seed)
	if len(constants.PrefixExtensionNamespace+name) != 63 {
		t.Errorf("the namespace %s%s has %d characters", constants.PrefixExtensionNamespace, name, len(constants.PrefixExtensionNamespace+name))
	}
	r.UID = "again"
	if nameOf(r, in.Seed) == name {
		t.Error("a recreated registration has an installation with the same name")
	}
	in.Seed.UID = "again"
	if other := nameOf(r, in.Seed); other == name {
		t.Error("a recreated Seed has an installation with the same name")
	}
}

// TestReduce checks that the hash of a reduced deployment changes with its chart.
func TestReduce(t *testing.T) {
	hash := func(chart string) string {
		deployment := &gardencorev1.ControllerDeployment{Helm: &gardencorev1.HelmControllerDeployment{RawChart: []byte(chart)}}
		Reduce(deployment)
		if len(deployment.Helm.RawChart) > 32 {
			t.Errorf("%d bytes of the chart are kept", len(deployment.Helm.RawChart))
		}
		text, err := hashOf(contentOf(deployment))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if a, b := hash(strings.Repeat("a", 1000)), hash(strings.Repeat("b", 1000)); a == b {
		t.Errorf("two different charts have the hash %s", a)
	}
	if hash("") == hash("x") {
		t.Error("a missing chart and a short one have the same hash")
	}
}

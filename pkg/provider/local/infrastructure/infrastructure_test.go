package infrastructure

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func newCluster() *extension.Cluster {
	cluster := &extension.Cluster{Shoot: &gardencorev1beta1.Shoot{}, Seed: &gardencorev1beta1.Seed{}}
	cluster.Seed.Spec.Networks.Pods = "10.99.0.0/17"
	cluster.Shoot.Spec.Networking = &gardencorev1beta1.Networking{Pods: ptr.To("100.96.0.0/16"), Services: ptr.To("100.64.0.0/16")}
	return cluster
}

func config(text string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(`{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureConfig"` + text + `}`)}
}

// machines are the settings of the extension.
var machines = local.Machines{Namespace: "extension-provider-local", Simulated: true}

func TestPlan(t *testing.T) {
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: "blue"}}
	plan, err := Plan(object, newCluster(), machines)
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckPlan(t, "infrastructure", plan, object.Status)
	if _, err := Plan(object, nil, machines); err == nil || !strings.Contains(err.Error(), "the Cluster shoot--dev--blue with the networks does not exist") {
		t.Errorf("without a Cluster: %v", err)
	}
}

// TestNodes checks which field determines the network range of nodes.
func TestNodes(t *testing.T) {
	declared := newCluster()
	declared.Shoot.Spec.Networking.Nodes = ptr.To("10.250.0.0/16")
	workerless := newCluster()
	workerless.Shoot.Spec.Networking, workerless.Seed = nil, nil
	for name, test := range map[string]struct {
		cluster *extension.Cluster
		config  *runtime.RawExtension
		want    string
	}{
		"the seed's Pods":   {newCluster(), nil, ""},
		"the Shoot's nodes": {declared, config(""), "10.250.0.0/16"},
		"the configuration": {declared, config(`,"networks":{"nodes":"10.251.0.0/16"}`), "10.251.0.0/16"},
		"none":              {workerless, nil, ""},
	} {
		object := &extensionsv1alpha1.Infrastructure{}
		object.Spec.ProviderConfig = test.config
		if _, err := Plan(object, test.cluster, machines); err != nil {
			t.Fatal(err)
		}
		if got := ptr.Deref(object.Status.NodesCIDR, ""); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for text, want := range map[string]string{
		"": "", `,"networks":{"nodes":"10.250.0.0/16"}`: "",
		`,"networks":{"nodes":"100.96.1.0/24"}`: "range of pods",
		`,"network":{}`:                         `unknown field "network"`,
	} {
		object := &extensionsv1alpha1.Infrastructure{}
		object.Spec.ProviderConfig = config(text)
		errs := (&Actuator{}).Validate(context.Background(), object, newCluster())
		if (len(errs) == 0) != (want == "") || want != "" && !strings.Contains(errs.ToAggregate().Error(), want) {
			t.Errorf("%s: %v, want %q", text, errs, want)
		}
	}
}

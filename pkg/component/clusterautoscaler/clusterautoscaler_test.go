package clusterautoscaler

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	spec := corev1beta1.ShootSpec{
		Provider:   corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "a"}}},
		Kubernetes: corev1beta1.Kubernetes{Version: "1.37.1", ClusterAutoscaler: &corev1beta1.ClusterAutoscaler{}},
	}
	corev1beta1.SetDefaultsShootSpec(&spec, "garden-dev", "one")
	return Values{
		Namespace: "shoot--dev--one", Image: "cluster-autoscaler:v1", Replicas: 1, Config: *spec.Kubernetes.ClusterAutoscaler,
		Deployments: []extensionsv1alpha1.MachineDeployment{
			{Name: "shoot--dev--one-small-z1", Minimum: 1, Maximum: 3}, {Name: "shoot--dev--one-large-z1", Minimum: 2, Maximum: 2},
		},
		Kubeconfig: "generic-token-kubeconfig-12345678", VerticalPodAutoscaler: true,
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "seed", append(objects, AccessSecret("shoot--dev--one")))
	if objects, err = ShootObjects(values()); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shoot", objects)
}

// TestFields checks that each field of spec.kubernetes.clusterAutoscaler has an effect.
func TestFields(t *testing.T) {
	before, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[corev1beta1.ClusterAutoscaler]()
	for i := range fields.NumField() {
		changed := values()
		field := reflect.ValueOf(&changed.Config).Elem().Field(i)
		switch name := fields.Field(i).Name; {
		case name == "MaxEmptyBulkDelete":
			continue // the API server moves its value to another field
		case name == "Autoscaling":
			changed.Config.Autoscaling = &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
		case field.Kind() == reflect.Slice:
			field.Set(reflect.ValueOf([]string{"taint"}))
		case field.Elem().Kind() == reflect.Struct:
			field.Elem().Field(0).SetInt(42)
		case field.Elem().Kind() == reflect.Bool:
			field.Elem().SetBool(true)
		case field.Elem().Kind() == reflect.Float64:
			field.Elem().SetFloat(0.42)
		case field.Elem().Kind() == reflect.String:
			field.Elem().SetString("random")
		default:
			field.Elem().SetInt(42)
		}
		after, err := Objects(changed)
		if err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(before, after) {
			t.Errorf("%s has no effect", fields.Field(i).Name)
		}
	}
}

// TestDeployments checks what depends on the sets of machines.
func TestDeployments(t *testing.T) {
	of := values()
	if got := flags(of); slices.ContainsFunc(got, func(flag string) bool { return strings.HasPrefix(flag, "--max-") && strings.Contains(flag, "total") }) {
		t.Errorf("without limits, the flags are %v", got)
	}
	of.MaxNodes, of.Deployments[0].Priority, of.Deployments[1].AutoPreserveFailedMachineMax = 7, ptr.To[int32](10), ptr.To[int32](1)
	got := flags(of)
	for _, want := range []string{
		"--max-nodes-total=7", "--max-total-unready-percentage=100", "--expander=priority,least-waste", "--nodes=1:3:shoot--dev--one.shoot--dev--one-small-z1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	config, err := priorities(of.Deployments)
	if err != nil {
		t.Fatal(err)
	}
	const want = "0:\n- ^.*\\.shoot--dev--one-large-z1$\n10:\n- ^.*\\.shoot--dev--one-small-z1$\n"
	if text := config.Data["priorities"]; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	of.Config.Expander = ptr.To(corev1beta1.ExpanderMode("priority,random"))
	if got := expander(of); got != "priority,random" {
		t.Errorf("the expander is %s", got)
	}
}

package registration

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// TestRegister checks that a Seed is created, updated if it differs, and otherwise not written. Additions of other clients are
// kept.
func TestRegister(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := gardencorev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	writes := 0
	garden := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			writes++
			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, object, options...)
		},
	}).Build()
	config := &v1alpha1.SeedConfig{SeedTemplate: gardencorev1beta1.SeedTemplate{
		Metadata: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"own": "label"}, Annotations: map[string]string{"own": "annotation"}},
		Spec:     gardencorev1beta1.SeedSpec{Networks: gardencorev1beta1.SeedNetworks{Pods: "100.96.0.0/11"}},
	}}
	register := func(when string, want int) *gardencorev1beta1.Seed {
		t.Helper()
		writes = 0
		seed, err := Register(t.Context(), garden, config)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if writes != want {
			t.Errorf("%s: %d writes, want %d", when, writes, want)
		}
		return seed
	}
	seed := register("a new Seed", 1)
	if seed.Labels["own"] != "label" || seed.Annotations["own"] != "annotation" || seed.Labels["name.seed.gardener.cloud/one"] != "true" ||
		seed.Labels["gardener.cloud/role"] != "seed" || seed.Spec.Settings == nil {
		t.Errorf("got %+v", seed)
	}
	register("the same again", 0)
	seed.Labels["other"], seed.Annotations["other"] = "label", "annotation"
	if err := garden.Update(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	if seed = register("a label of others", 0); seed.Labels["other"] != "label" {
		t.Errorf("got %+v", seed)
	}
	config.Spec.Networks.BlockCIDRs = []string{"169.254.169.254/32"}
	if seed = register("another specification", 1); len(seed.Spec.Networks.BlockCIDRs) != 1 || seed.Annotations["other"] != "annotation" {
		t.Errorf("got %+v", seed)
	}
}

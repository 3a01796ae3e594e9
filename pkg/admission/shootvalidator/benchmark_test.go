package shootvalidator

import (
	"context"
	"fmt"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const shootsOfBenchmark = 10_000

// indexed reads Shoots by the indexes that the API server uses.
type indexed struct {
	admission.Reader[*gardencorev1beta1.Shoot]

	indexer toolscache.Indexer
}

// By implements admission.Reader.
func (i indexed) By(_ context.Context, index admission.Index[*gardencorev1beta1.Shoot], key string) ([]*gardencorev1beta1.Shoot, error) {
	found, err := i.indexer.ByIndex(index.Name, key)
	var shoots []*gardencorev1beta1.Shoot
	for _, one := range found {
		if shoot, ok := one.(*gardencorev1beta1.Shoot); ok {
			shoots = append(shoots, shoot)
		}
	}
	return shoots, err
}

// BenchmarkPlugin measures decisions about a Shoot among 10,000 others on 100 Seeds.
func BenchmarkPlugin(b *testing.B) {
	indexers := toolscache.Indexers{}
	for _, index := range []admission.Index[*gardencorev1beta1.Shoot]{admission.ShootsByDomain, admission.ShootsBySeed} {
		indexers[index.Name] = func(object any) ([]string, error) {
			shoot, ok := object.(*gardencorev1beta1.Shoot)
			if !ok {
				return nil, fmt.Errorf("index an object of type %T", object)
			}
			return index.Keys(shoot), nil
		}
	}
	shoots := indexed{indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)}
	for i := range shootsOfBenchmark {
		shoot := &gardencorev1beta1.Shoot{}
		shoot.Namespace, shoot.Name = "garden-dev", fmt.Sprintf("shoot-%d", i)
		shoot.Spec.SeedName, shoot.Spec.DNS = ptr.To(fmt.Sprintf("seed-%d", i%100)), &gardencorev1beta1.DNS{Domain: ptr.To(shoot.Name + ".dev.example.org")}
		if err := shoots.indexer.Add(shoot); err != nil {
			b.Fatal(err)
		}
	}
	garden := admissiontest.NewGarden(world(b), now)
	garden.Shoots = shoots
	old := parse[gardencorev1beta1.Shoot](b, shootYAML)
	old.Spec.DNS = &gardencorev1beta1.DNS{Domain: ptr.To("one.dev.example.org")}
	for name, test := range map[string]struct {
		change edit
		old    *gardencorev1beta1.Shoot
	}{"create": {on("seed"), nil}, "machine type": {machine("large"), old}, "label": {label, old}} {
		b.Run(name, func(b *testing.B) {
			shoot := old.DeepCopy()
			test.change(shoot)
			r := request(shoot, test.old, "")
			for b.Loop() {
				if err := admission.Validate(b.Context(), Plugin.Rules, r, garden); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package controllermanager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestControllers checks that the controllers can share one cache, that their names are unique, that each states its rights, and that
// each directory of a controller is in the table.
func TestControllers(t *testing.T) {
	all := Controllers()
	if _, err := all.Cache(); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, one := range all {
		if names[one.Name] || one.Add == nil || len(one.Rights) == 0 {
			t.Errorf("the controller %q has the name of another one, or lacks Add or rights", one.Name)
		}
		names[one.Name] = true
	}
	directories, err := filepath.Glob(filepath.Join("controller", "*", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("controllers.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range directories {
		if name := filepath.Base(filepath.Dir(directory)); !strings.Contains(string(table), name+".Controller()") {
			t.Errorf("the controller in directory %s is not in the table", name)
		}
	}
}

// TestReducedShoots checks that the cache has the fields that each controller reads, and not more.
func TestReducedShoots(t *testing.T) {
	kinds, err := Controllers().Cache()
	if err != nil {
		t.Fatal(err)
	}
	seed := "one"
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "garden-dev", Labels: map[string]string{"shoot.gardener.cloud/status": "healthy", "other": "label"}},
		Spec:       corev1beta1.ShootSpec{SeedName: &seed, Region: "here", Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{Name: "pool", Machine: corev1beta1.Machine{Type: "medium"}, Zones: []string{"a"}}}}, Resources: []corev1beta1.NamedResourceReference{{Name: "secret"}}},
		Status: corev1beta1.ShootStatus{
			SeedName: &seed, TechnicalID: "shoot--dev--a", LastOperation: &corev1beta1.LastOperation{State: "Succeeded", Description: "long"},
		},
	}
	for object, options := range kinds {
		if _, ok := object.(*corev1beta1.Shoot); !ok {
			continue
		}
		reduced, err := options.Transform(shoot)
		if err != nil {
			t.Fatal(err)
		}
		kept, ok := reduced.(*corev1beta1.Shoot)
		if !ok {
			t.Fatalf("the cache has a %T", reduced)
		}
		if kept.Name != "a" || kept.Labels["shoot.gardener.cloud/status"] != "healthy" || *kept.Spec.SeedName != seed || *kept.Status.SeedName != seed ||
			kept.Spec.Provider.Type != "local" || len(kept.Spec.Resources) != 1 || kept.Status.LastOperation.State != "Succeeded" {
			t.Errorf("the cache lacks fields: %+v", kept)
		}
		if pools := kept.Spec.Provider.Workers; len(pools) != 1 || pools[0].Name != "pool" || pools[0].Machine.Type != "medium" || len(pools[0].Zones) != 0 {
			t.Errorf("the cache has the pools %+v", pools)
		}
		if kept.Labels["other"] != "" || kept.Spec.Region != "" || kept.Status.TechnicalID != "" || kept.Status.LastOperation.Description != "" {
			t.Errorf("the cache has fields that no controller reads: %+v", kept)
		}
		return
	}
	t.Error("Shoots are not reduced")
}

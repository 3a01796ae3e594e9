package etcd

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestRenderedDeletion checks that an Etcd that is being deleted, with the fields that a cluster returns, deletes its bundle.
func TestRenderedDeletion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.yaml")
	if err := os.WriteFile(file, []byte("images: [{name: etcd-member, repository: registry.example.org/etcd-member, tag: v1}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("IMAGEVECTOR_OVERWRITE", file)
	declaration := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd",
		"metadata": map[string]any{"namespace": "shoot", "name": "main", "deletionTimestamp": "2026-11-23T12:00:00Z"},
	}}
	_, plan, err := Renderer().Plan(flow.RenderInputs{Declaration: declaration, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	key := flow.Key{Namespace: "shoot", Name: "main-members"}
	if deleted := plan.Deletions(); len(deleted) != 1 || deleted[0].Key != key || len(plan.Bundles) > 0 {
		t.Errorf("the plan deletes %v and emits %v", deleted, plan.Bundles)
	}
}

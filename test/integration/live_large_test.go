package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestLiveLargeManagedFields makes other managers own that many fields of objects that the metadata alone is nearly
// as large as the API server can store. Drift is still corrected, also when a client adds thousands of keys.
func TestLiveLargeManagedFields(t *testing.T) {
	const objects, keys = 2, 25_000 // one gets more keys, the other is deleted; each takes seconds of CPU time
	f := newFixture(t)
	p := f.start(onlyEvents)
	var documents []string
	for i := range objects {
		documents = append(documents, f.configMap(fmt.Sprintf("map-%d", i), "1"))
	}
	f.manage("set", documents...)
	f.eventuallySucceeded("set")
	t.Logf("resident memory before: %.0f MiB", p.metric("process_resident_memory_bytes")/(1<<20))
	data := map[string]any{}
	for i := range keys {
		data[fmt.Sprintf("k-%05d", i)] = ""
	}
	for i := range objects {
		for _, manager := range []string{"kube-controller-manager", "cainjector", "kube-scheduler"} { // their additions are kept
			theirs := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("map-%d", i), "namespace": f.namespace}, "data": data,
			}}
			must(t, f.client.Apply(f.ctx, client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner(manager)))
		}
	}
	size := 0
	for _, entry := range f.object(documents[0]).GetManagedFields() {
		size += len(entry.FieldsV1.GetRawBytes())
	}
	if size < 1<<20 {
		t.Fatalf("the managedFields have only %d bytes", size)
	}
	for i := range objects {
		f.eventuallyRestored(fmt.Sprintf("map-%d", i), "1")
	}
	var added strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&added, `,"added-%d":""`, i)
	}
	f.patch(documents[0], "kubectl-edit", `{"data":{`+added.String()[1:]+`}}`)
	f.eventually("only the added keys are removed", func() bool { return len(f.liveConfigMap("map-0").Data) == keys+1 })
	must(t, f.client.Delete(f.ctx, f.object(documents[1])))
	f.eventually("the ConfigMap is recreated", func() bool { return f.liveConfigMap("map-1") != nil && len(f.liveConfigMap("map-1").Data) == 1 })
	f.eventuallySucceeded("set")
	t.Logf("%d objects with %d KiB of managedFields each: resident memory %.0f MiB, heap %.0f MiB", objects, size>>10,
		p.metric("process_resident_memory_bytes")/(1<<20), p.metric("go_memstats_heap_inuse_bytes")/(1<<20))
}

package garbage

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestReferenceAddedRightBeforeTheDeletion switches a ManagedResource to an old Secret after all references were listed
// for the second time.
func TestReferenceAddedRightBeforeTheDeletion(t *testing.T) {
	f := newFixture(t)
	f.secrets("a")
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: f.metaOf("set", nil)}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{}
	must(t, f.client.Create(f.ctx, mr))
	lists := 0
	f.requests.before = func(request *http.Request) error {
		if isList(request, "managedresources") {
			if lists++; lists == 5 { // each of the first two checks has listed metadata and specs
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"secretRefs":[{"name":"a"}]}}`))
				must(t, f.client.Patch(f.ctx, mr, patch))
			}
		}
		return nil
	}
	f.collect()
	f.wantLeft("a")
	if !strings.Contains(f.log.last(), `"referredToMeanwhile"=1`) {
		t.Errorf("%d lists, and the last line of the log is %s", lists, f.log.last())
	}
}

// TestChangedObjectIsKept: a client that changes an old object has ten minutes to refer to it.
func TestChangedObjectIsKept(t *testing.T) {
	f := newFixture(t)
	f.configMaps("a", "b")
	changed := &corev1.ConfigMap{}
	must(t, f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "a"}, changed))
	f.eventually("a second has passed since the creation", func() bool { return time.Since(changed.CreationTimestamp.Time) > time.Second })
	must(t, f.client.Patch(f.ctx, changed, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"touched":"now"}}}`))))
	var touched time.Time
	for _, entry := range changed.ManagedFields {
		touched = entry.Time.Time
	}
	f.clock.SetTime(touched.Add(10*time.Minute - time.Second))
	f.collect()
	f.wantLeft("a")
	f.clock.SetTime(touched.Add(10 * time.Minute))
	f.collect()
	f.wantLeft()
}

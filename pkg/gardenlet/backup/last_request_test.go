package backup

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
)

// TestAskedWhileTheCacheIsBehind checks that a requested operation is known before the cache shows it.
func TestAskedWhileTheCacheIsBehind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := resourcesv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &Seed{Objects: gardenobjects.New(nil), Emitted: flow.IndexedReader{Reader: fake.NewClientBuilder().WithScheme(scheme).Build()}}
	owner, key := flow.Owner{Flow: "backupentry", UID: "1"}, flow.Key{Namespace: "garden", Name: "backupentry-a"}
	read := func() Asked {
		t.Helper()
		asked, err := s.Asked(t.Context(), owner, key)
		if err != nil {
			t.Fatal(err)
		}
		return asked
	}
	if asked := read(); asked != (Asked{}) {
		t.Errorf("before any request: %+v", asked)
	}
	want := Asked{Digest: "a", At: now.Add(time.Millisecond)}
	s.Remember(owner, want)
	if asked := read(); asked != want {
		t.Errorf("asked %+v, want %+v", asked, want)
	}
	s.Forget(owner)
	if asked := read(); asked != (Asked{}) {
		t.Errorf("after Forget: %+v", asked)
	}
}

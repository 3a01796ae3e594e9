package apply

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// changedMeanwhile simulates another writer that changes the object before each patch.
type changedMeanwhile struct {
	metadata.ResourceInterface
	fresh *metav1.PartialObjectMetadata
}

func (c changedMeanwhile) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*metav1.PartialObjectMetadata, error) {
	return nil, apierrors.NewConflict(schema.GroupResource{Resource: "etcds"}, "events", nil)
}

func (c changedMeanwhile) Get(context.Context, string, metav1.GetOptions, ...string) (*metav1.PartialObjectMetadata, error) {
	return c.fresh, nil
}

// TestRewriteOfAnObjectThatChanges simulates another writer that removes the fields that the rewrite should release. With an
// Etcd, whose operator removes the operation annotation at once, the first pass used to panic with a nil pointer here.
func TestRewriteOfAnObjectThatChanges(t *testing.T) {
	applied := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "events", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}}}}
	fresh := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "events", ResourceVersion: "2"}}
	got, err := rewrite(t.Context(), changedMeanwhile{fresh: fresh}, applied, func(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
		return entries, len(entries) > 0, nil
	})
	if err != nil || got != fresh {
		t.Errorf("got %v, %v; want the object as it is now", got, err)
	}
}

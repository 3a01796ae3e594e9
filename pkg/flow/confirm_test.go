package flow

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
)

// TestForcedDeletionIsConfirmed checks that the objects of a tombstone that forces their deletion confirm it, and lose their
// finalizers after some time. Objects of other tombstones do not. Operation annotations are removed, so that no operation is
// requested again.
func TestForcedDeletionIsConfirmed(t *testing.T) {
	live := emitted(t, Plan{Bundles: []Bundle{bundle("a", "1")}})
	secrets, err := pack(owner, named("a"), []manifestsecret.Document{{Name: "one", Text: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default, annotations: {gardener.cloud/operation: reconcile}}\n")}})
	if err != nil {
		t.Fatal(err)
	}
	e := &Emitter{Uncached: fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(secrets[0]).Build()}
	for _, force := range []bool{true, false} {
		decision := decide(t, Plan{Tombstones: []Tombstone{{Key: named("a"), Confirm: true, Force: force}}}, live)
		documents, err := e.confirmed(t.Context(), client.ObjectKeyFromObject(secrets[0]), decision.Steps[0])
		if err != nil {
			t.Fatal(err)
		}
		text := string(documents[0].Text)
		if !strings.Contains(text, AnnotationConfirmDeletion+`: "true"`) || strings.Contains(text, AnnotationForceDeletion+`: "true"`) != force {
			t.Errorf("force %t: %s", force, text)
		}
		if strings.Contains(text, "finalize-deletion-after: 5m") != force || strings.Contains(text, "gardener.cloud/operation") {
			t.Errorf("force %t: %s", force, text)
		}
	}
}

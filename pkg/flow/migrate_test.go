package flow

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
)

// TestMigratedBeforeDeleted checks that the objects of a bundle that moves are asked to be given up before they are deleted, that they
// stay as long as the plan says, and that one that was deleted by hand is not confirmed.
func TestMigratedBeforeDeleted(t *testing.T) {
	key := named("worker")
	plan := func(kept string) Plan {
		return Plan{Deleting: true, Tombstones: []Tombstone{{Key: key, Confirm: true, Migrate: start, Kept: kept}}}
	}
	live := emitted(t, Plan{Bundles: []Bundle{bundle("worker", "1")}})
	decision := decide(t, plan("not saved"), live)
	if got := steps(decision); got != "Confirm worker" || !decision.Steps[0].migrate.Equal(start) {
		t.Fatalf("steps %+v", decision.Steps)
	}
	live = carriedOut(t, live, decision)
	if decision = decide(t, plan(""), live); len(decision.Steps) > 0 || decision.Pending[key] == "" {
		t.Errorf("before the request is applied: %+v", decision)
	}
	ready(live.ManagedResources[key])
	if decision = decide(t, plan("not saved"), live); len(decision.Steps) > 0 || decision.Pending[key] != "not saved" {
		t.Errorf("before the state is saved: %+v", decision)
	}
	if decision = decide(t, plan(""), live); steps(decision) != "Delete worker" {
		t.Errorf("afterwards: %q", steps(decision))
	}

	live = emitted(t, Plan{Bundles: []Bundle{bundle("worker", "1")}})
	deleteAt(live.ManagedResources[key])
	if decision = decide(t, plan(""), live); len(decision.Steps) > 0 || decision.Problems[key] == "" {
		t.Errorf("deleted by hand: %+v", decision)
	}
	live = emitted(t, Plan{Bundles: []Bundle{bundle("worker", "1")}})
	clear(live.Secrets)
	if decision = decide(t, plan(""), live); len(decision.Steps) > 0 || decision.Problems[key] == "" {
		t.Errorf("without manifests: %+v", decision)
	}
}

// TestKeptTombstone checks that a bundle whose objects need no confirmation is kept, too.
func TestKeptTombstone(t *testing.T) {
	live := emitted(t, Plan{Bundles: []Bundle{bundle("a", "1")}})
	plan := Plan{Deleting: true, Tombstones: []Tombstone{{Key: named("a"), Kept: "others need it"}}}
	if decision := decide(t, plan, live); len(decision.Steps) > 0 || decision.Pending[named("a")] != "others need it" {
		t.Errorf("%+v", decision)
	}
}

// TestMigrationIsRequested checks the annotations of an extension object that moves, and that other objects are not asked.
func TestMigrationIsRequested(t *testing.T) {
	documents := []manifestsecret.Document{
		{Name: "one", Text: []byte("apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Worker\nmetadata: {name: one, namespace: default, annotations: {gardener.cloud/operation: reconcile}}\n")},
		{Name: "two", Text: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: two, namespace: default}\n")},
	}
	secrets, err := pack(owner, named("a"), documents)
	if err != nil {
		t.Fatal(err)
	}
	e := &Emitter{Uncached: fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(secrets[0]).Build()}
	confirmed, err := e.confirmed(t.Context(), client.ObjectKeyFromObject(secrets[0]), Step{migrate: start})
	if err != nil || len(confirmed) != 2 {
		t.Fatal(confirmed, err)
	}
	for _, each := range confirmed {
		text := string(each.Text)
		asked := strings.Contains(text, "gardener.cloud/operation: migrate") && strings.Contains(text, `gardener.cloud/timestamp: "2027-01-02T03:04:05Z"`)
		if asked != (each.key.Kind == "Worker") || !strings.Contains(text, AnnotationConfirmDeletion+`: "true"`) {
			t.Errorf("%s: %s", each.Name, text)
		}
	}
}

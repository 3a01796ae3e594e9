package restoredgarden

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// recordsIn returns records in a cluster, as one process has them.
func recordsIn(cluster client.Client) *Records {
	return &Records{
		Ledgers: &flow.Ledgers{Cached: cluster, Uncached: cluster, Local: true}, Writer: cluster, Namespace: "garden", Flow: "shoot",
		Clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
}

// TestRecords checks that records are kept for other processes, and removed.
func TestRecords(t *testing.T) {
	cluster := fake.NewClientBuilder().Build()
	records, want := recordsIn(cluster), Record{Left, 12, true}
	is := func(records *Records, shoot types.UID, want *Record) {
		t.Helper()
		got, err := records.Of(t.Context(), shoot)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: got %v, %v, want %v", shoot, got, err, want)
		}
	}
	is(records, "a", nil)
	if err := records.Set(t.Context(), "a", &want); err != nil {
		t.Fatal(err)
	}
	is(records, "a", &want)
	is(records, "b", nil)

	other := recordsIn(cluster)
	is(other, "a", &want)
	if err := other.Set(t.Context(), "b", &Record{Deleted, 3, false}); err != nil {
		t.Fatal(err)
	}
	if err := records.Set(t.Context(), "c", &Record{Changed, 4, false}); err != nil {
		t.Fatalf("a record could not be written after another process had written one: %v", err)
	}
	is(recordsIn(cluster), "b", &Record{Deleted, 3, false})
	if err := records.Set(t.Context(), "a", nil); err != nil {
		t.Fatal(err)
	}
	is(recordsIn(cluster), "a", nil)
	is(recordsIn(cluster), "c", &Record{Changed, 4, false})
}

// TestOldRecordsAreDropped checks that the number of records is limited.
func TestOldRecordsAreDropped(t *testing.T) {
	entries := map[string]flow.Entry{}
	for i := range maxRecords + 2 {
		entries[fmt.Sprint(i)] = flow.Entry{Time: time.Unix(int64(i), 0)}
	}
	limit(entries)
	_, first := entries["1"]
	_, third := entries["2"]
	if len(entries) != maxRecords || first || !third {
		t.Errorf("%d records are left; the second oldest is kept: %t, the third: %t", len(entries), first, third)
	}
}

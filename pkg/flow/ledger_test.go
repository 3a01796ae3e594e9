package flow

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestLedgersAreReadOnce checks that a ledger is read from the API server only if it might have changed, and not in each pass.
func TestLedgersAreReadOnce(t *testing.T) {
	key := Key{Namespace: "garden-dev", Name: "one-ledger"}
	behind := fake.NewClientBuilder().WithScheme(testScheme()).Build() // an empty cache
	reads := 0
	c := fake.NewClientBuilder().WithScheme(testScheme()).Build()
	counting := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	ledgers := &Ledgers{Cached: behind, Uncached: counting}
	read := func(want int, why string) *Ledger {
		t.Helper()
		reads = 0
		ledger, err := ledgers.Read(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if reads != want {
			t.Errorf("%s: %d reads, want %d", why, reads, want)
		}
		return ledger
	}
	write := func(ledger *Ledger, name string) {
		t.Helper()
		if err := ledger.Write(t.Context(), c, owner, name, Entry{Value: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	read(1, "after a start")
	write(read(0, "the ledger still does not exist"), "drained")
	if ledger := read(1, "the cache does not show the write yet"); !ledger.Has("drained", "1") {
		t.Error("the entry is missing")
	}
	ledgers.Cached = c
	ledger := read(0, "the cache shows the write")
	if !ledger.Has("drained", "1") {
		t.Error("the entry is missing")
	}
	other, err := ReadLedger(t.Context(), c, key)
	if err != nil {
		t.Fatal(err)
	}
	write(other, "rewritten")
	if ledger := read(1, "another writer has changed it"); !ledger.Has("rewritten", "1") {
		t.Error("the entry is missing")
	}
	ledgers.Forget(key)
	read(1, "after Forget")
}

package flow

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

// TestLocalLedgersAreNotSaved checks that a ledger of things that stay in the seed is not saved in the state of a Shoot,
// also if another version of the program has labelled it.
func TestLocalLedgersAreNotSaved(t *testing.T) {
	key := Key{Namespace: "shoot--dev--one", Name: "etcd-ledger-main"}
	c := fake.NewClientBuilder().WithScheme(testScheme()).Build()
	saved := func() string {
		t.Helper()
		var secret corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, &secret); err != nil {
			t.Fatal(err)
		}
		if secret.Labels[LabelFlow] != owner.Flow {
			t.Errorf("labels %v", secret.Labels)
		}
		return secret.Labels[labelPersist]
	}
	read := func(local bool) *Ledger {
		t.Helper()
		ledger, err := (&Ledgers{Cached: c, Uncached: c, Local: local}).Read(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return ledger
	}
	if err := read(false).Write(t.Context(), c, owner, "formed", Entry{Value: "1"}); err != nil || saved() != "true" {
		t.Errorf("error %v, persist=%q", err, saved())
	}
	for range 2 { // the second call sends nothing
		if err := read(true).Label(t.Context(), c); err != nil || saved() != "" || !read(true).Has("formed", "1") {
			t.Errorf("after the upgrade: error %v, persist=%q", err, saved())
		}
	}
	if err := read(true).Write(t.Context(), c, owner, "defragmented", Entry{Value: "2"}); err != nil || saved() != "" {
		t.Errorf("error %v, persist=%q", err, saved())
	}
	fresh := Key{Namespace: key.Namespace, Name: "etcd-ledger-events"}
	ledger, err := (&Ledgers{Cached: c, Uncached: c, Local: true}).Read(t.Context(), fresh)
	if err != nil || ledger.Label(t.Context(), c) != nil {
		t.Errorf("a ledger that does not exist: %v", err)
	}
	key = fresh
	if err := ledger.Write(t.Context(), c, owner, "formed", Entry{Value: "1"}); err != nil || saved() != "" {
		t.Errorf("a new ledger: error %v, persist=%q", err, saved())
	}
}

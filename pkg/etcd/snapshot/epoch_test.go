package snapshot

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"
)

func memory(t *testing.T) Store {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = bucket.Close() })
	return Store{Bucket: bucket}
}

// TestClaim checks that two histories never write to the same store.
func TestClaim(t *testing.T) {
	s, ctx := memory(t), t.Context()
	must := func(cluster string, follows, number int) Epoch {
		t.Helper()
		epoch, err := s.Claim(ctx, cluster, follows, now)
		if err != nil || epoch.Number != number {
			t.Fatalf("%s: %+v, %v", cluster, epoch, err)
		}
		return epoch
	}
	first := must("c1", 0, 1)
	if again := must("c1", 0, 1); again.ID != first.ID {
		t.Error("the epoch of the same cluster begins again")
	}
	if _, err := s.Claim(ctx, "x", 0, now); !errors.Is(err, ErrForeign) {
		t.Errorf("an unknown cluster: %v", err)
	}
	must("c2", 1, 2)
	if _, err := s.Claim(ctx, "c1", 0, now); !errors.Is(err, ErrSuperseded) {
		t.Errorf("a cluster that was replaced: %v", err)
	}
	if _, err := s.Claim(ctx, "c3", 1, now); !errors.Is(err, ErrForeign) {
		t.Errorf("a second restoration of the first epoch: %v", err)
	}
	if _, err := s.PutFull(ctx, Written{Epoch: first, Compression: CompressionNone, Now: now}, 5, strings.NewReader("x")); !errors.Is(err, ErrSuperseded) {
		t.Errorf("a snapshot of an earlier epoch: %v", err)
	}
	epochs, err := s.Epochs(ctx)
	if err != nil || !Continues(epochs, "c1") || !Continues(epochs, "c2") || Continues(epochs, "x") {
		t.Errorf("the epochs %+v, %v", epochs, err)
	}
}

// TestIncompleteStream checks that a stream of etcd that breaks off leaves no object.
func TestIncompleteStream(t *testing.T) {
	s, ctx := memory(t), t.Context()
	epoch, err := s.Claim(ctx, "c1", 0, now)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := io.ReadAll(withChecksum(strings.NewReader(strings.Repeat("database", 10_000))))
	if err != nil {
		t.Fatal(err)
	}
	written := Written{Epoch: epoch, Compression: CompressionGzip, Now: now}
	for _, end := range []int{0, 10, 40_000, len(stream) - 1} {
		if _, err := s.PutFull(ctx, written, 5, bytes.NewReader(stream[:end])); err == nil {
			t.Errorf("a stream of %d bytes is stored", end)
		}
	}
	if objects, err := s.List(ctx); err != nil || len(objects) > 0 {
		t.Errorf("the objects %v, %v", objects, err)
	}
	object, err := s.PutFull(ctx, written, 5, bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if err := s.Read(ctx, object, func(r io.Reader) error { _, err := io.Copy(&content, r); return err }); err != nil || !bytes.Equal(content.Bytes(), stream) {
		t.Errorf("read %d bytes, %v", content.Len(), err)
	}
}

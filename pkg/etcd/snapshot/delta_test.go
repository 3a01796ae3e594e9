package snapshot

import (
	"bytes"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// TestDamagedDelta checks that damaged records of a delta snapshot are reported. A flipped bit in the length of a change can leave an empty
// one, without a key.
func TestDamagedDelta(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{
		"an empty change":             {recordEvent, 0},
		"a change that ends too soon": {recordEvent, 5, 1},
		"a lease without its TTL":     {recordLease, 2},
		"an unknown record":           {255},
	} {
		err := readDelta(bytes.NewReader(content), func(event *mvccpb.Event) error {
			t.Errorf("%s: read as %v", name, event)
			return nil
		}, func(int64, int64) error { return nil })
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package restoredgarden

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

const (
	// ledgerName is the name of the Secret with the records, in the namespace of gardenlet's ManagedResources.
	ledgerName = "shoot-records"
	// held follows the reason and the generation of a record with [Record.Held].
	held = "held"
	// maxRecords limits the Secret to 200 KiB. The oldest records are dropped.
	maxRecords = 2000
)

// Records are what a Seed remembers of Shoots, in a Secret. They are read once, and written when a control plane has gone. They can be used by
// several workers.
type Records struct {
	// Ledgers reads the Secret; Writer writes it.
	Ledgers *flow.Ledgers
	Writer  client.Writer
	// Namespace of the Secret.
	Namespace string
	// Flow marks the Secret, so that caches of the flow contain it.
	Flow  string
	Clock clock.PassiveClock

	mu sync.Mutex
}

func (r *Records) key() flow.Key { return flow.Key{Namespace: r.Namespace, Name: ledgerName} }

// Of returns what is remembered of a Shoot, nil for nothing.
func (r *Records) Of(ctx context.Context, shoot types.UID) (*Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ledger, err := r.Ledgers.Read(ctx, r.key())
	if err != nil {
		return nil, err
	}
	entry, found := ledger.Entry(string(shoot))
	if !found {
		return nil, nil //nolint:nilnil // nothing is remembered
	}
	parts := strings.Fields(entry.Value)
	if len(parts) < 2 {
		return nil, fmt.Errorf("read the record of the Shoot with the UID %s in Secret %s: %q is not a reason and a generation", shoot, r.key(), entry.Value)
	}
	generation, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the record of the Shoot with the UID %s in Secret %s: %w", shoot, r.key(), err)
	}
	return &Record{Reason(parts[0]), generation, len(parts) > 2 && parts[2] == held}, nil
}

// String is the value of the record in the Secret.
func (r Record) String() string {
	text := fmt.Sprintf("%s %d", r.Reason, r.Generation)
	if r.Held {
		text += " " + held
	}
	return text
}

// Set remembers a record of a Shoot; nil removes it. It reads the Secret again if another process has changed it.
func (r *Records) Set(ctx context.Context, shoot types.UID, record *Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.set(ctx, shoot, record)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = r.set(ctx, shoot, record)
	}
	if err != nil {
		return fmt.Errorf("remember in the Seed what happened to the Shoot: %w", err)
	}
	return nil
}

func (r *Records) set(ctx context.Context, shoot types.UID, record *Record) error {
	ledger, err := r.Ledgers.Read(ctx, r.key())
	if err != nil {
		return err
	}
	err = ledger.Change(ctx, r.Writer, r.Flow, func(entries map[string]flow.Entry) {
		delete(entries, string(shoot))
		if record != nil {
			entries[string(shoot)] = flow.Entry{Value: record.String(), Time: r.Clock.Now().UTC()}
		}
		limit(entries)
	})
	if err != nil {
		r.Ledgers.Forget(r.key())
	}
	return err
}

// limit drops the oldest entries of too many.
func limit(entries map[string]flow.Entry) {
	if len(entries) <= maxRecords {
		return
	}
	byAge := slices.SortedFunc(maps.Keys(entries), func(a, b string) int {
		return cmp.Or(entries[a].Time.Compare(entries[b].Time), cmp.Compare(a, b))
	})
	for _, name := range byAge[:len(entries)-maxRecords] {
		delete(entries, name)
	}
}

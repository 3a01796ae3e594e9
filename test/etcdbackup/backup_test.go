package etcdbackup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-k8s/trellis/pkg/etcd/backup"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
	"github.com/trellis-k8s/trellis/test/kit"
)

// change makes random changes of all kinds, and returns the last revision.
func (e *etcd) change(random *rand.Rand, count int) (revision int64) {
	e.Helper()
	key := func() string { return fmt.Sprintf("/registry/%02d", random.IntN(40)) }
	for range count {
		switch random.IntN(10) {
		case 0:
			answer, err := e.Delete(e.Context(), key())
			kit.Must(e.T, err)
			revision = max(revision, answer.Header.Revision)
		case 1:
			answer, err := e.Delete(e.Context(), "/registry/1", clientv3.WithPrefix())
			kit.Must(e.T, err)
			revision = max(revision, answer.Header.Revision)
		case 2:
			answer, err := e.Txn(e.Context()).Then(clientv3.OpPut("/a"+key(), "1"), clientv3.OpPut("/b"+key(), "2"), clientv3.OpDelete(key())).Commit()
			kit.Must(e.T, err)
			revision = max(revision, answer.Header.Revision)
		case 3:
			lease, err := e.Grant(e.Context(), 3600)
			kit.Must(e.T, err)
			revision = max(revision, e.put(key(), "leased", clientv3.WithLease(lease.ID)))
		default:
			revision = max(revision, e.put(key(), strings.Repeat("v", random.IntN(2000))))
		}
	}
	return revision
}

// TestRestoredIsAcknowledged makes random changes while snapshots of all compressions are taken. What is restored is exactly what
// etcd had at the last stored revision.
func TestRestoredIsAcknowledged(t *testing.T) {
	e := start(t, filepath.Join(t.TempDir(), "data"))
	random := rand.New(rand.NewPCG(1, 2))
	e.change(random, 30)
	for _, compression := range []string{snapshot.CompressionNone, snapshot.CompressionGzip, snapshot.CompressionLZW} {
		s := newStore(t)
		taker := e.takeBackups(s, "c1", func(settings *backup.Settings) {
			settings.Compression, settings.Limit = compression, 20_000 // several delta snapshots
		})
		taker.stored(t, e.change(random, 60))
		taker.stored(t, e.change(random, 60))
		last := e.change(random, 20)
		taker.stop() // stores the last changes
		if restored := s.restore(e, last); restored.Revision != last || len(restored.Notes) > 0 {
			t.Errorf("%s: restored %+v instead of the revision %d", compression, restored, last)
		}
	}
}

// TestFaults makes the store or etcd fail. Changes are never missing without a report, and a full snapshot closes each gap.
func TestFaults(t *testing.T) {
	e := start(t, filepath.Join(t.TempDir(), "data"))
	s := newStore(t)
	random := rand.New(rand.NewPCG(3, 4))
	taker := e.takeBackups(s, "c1", func(settings *backup.Settings) { settings.Limit = 10_000 })
	taker.stored(t, e.change(random, 20))

	// The store does not answer, and the changes exceed the limit of the disk.
	s.fail(errors.New("the store is down"))
	e.change(random, 200)
	kit.EventuallyTrue(t, "the error is reported", func() bool { return strings.Contains(taker.last().Error, "the store is down") })
	before := taker.last().Delta
	e.change(random, 200)
	if taker.last().Delta != before {
		t.Error("changes are reported as stored while the store does not answer")
	}
	s.fail(nil)
	taker.stored(t, e.change(random, 20))
	kit.EventuallyTrue(t, "the error is gone", func() bool { return taker.last().Error == "" })
	s.restore(e, taker.last().Delta.Revision)

	// The member does not lead for a while, and etcd compacts the changes.
	taker.SetLeader(false)
	last := e.change(random, 30)
	fulls := len(snapshot.Chains(s.objects(), 1))
	_, err := e.Compact(t.Context(), last)
	kit.Must(t, err)
	taker.SetLeader(true)
	taker.stored(t, last)
	if got := len(snapshot.Chains(s.objects(), 1)); got != fulls+1 {
		t.Errorf("there are %d full snapshots instead of %d after a compaction", got, fulls+1)
	}
	s.restore(e, last)

	// It goes on from the stored revision if nothing was compacted.
	taker.SetLeader(false)
	last = e.change(random, 30)
	taker.SetLeader(true)
	taker.stored(t, last)
	if got := len(snapshot.Chains(s.objects(), 1)); got != fulls+1 {
		t.Errorf("there are %d full snapshots instead of %d after a change of the leader", got, fulls+1)
	}
	s.restore(e, last)

	// Another cluster begins an epoch: this one writes nothing any more.
	_, err = s.opened().Claim(t.Context(), "c2", 1, time.Now())
	kit.Must(t, err)
	objects := len(s.objects())
	e.change(random, 30)
	kit.EventuallyTrue(t, "the reason is reported", func() bool { return strings.Contains(taker.last().Error, "another cluster writes backups") })
	if got := len(s.objects()); got != objects {
		t.Errorf("%d snapshots were written to the epoch of another cluster", got-objects)
	}
	taker.stop()
}

// TestDamagedStore damages each object in turn: it is either not needed, or its absence is reported.
func TestDamagedStore(t *testing.T) {
	e := start(t, filepath.Join(t.TempDir(), "data"))
	s := newStore(t)
	random := rand.New(rand.NewPCG(5, 6))
	taker := e.takeBackups(s, "c1", nil)
	for range 3 {
		taker.stored(t, e.change(random, 20))
	}
	_, err := taker.Full(t.Context(), true)
	kit.Must(t, err)
	taker.stored(t, e.change(random, 20))
	taker.stop()
	last := taker.last().Delta.Revision
	try := func(atLeast int64) (snapshot.Restored, error) {
		return s.opened().Restore(t.Context(), snapshot.Target{
			AtLeast: atLeast, Name: "e", PeerURL: "http://127.0.0.1:1", Token: "t", Directory: filepath.Join(t.TempDir(), "restored"),
		})
	}
	kinds := []string{"truncated", "empty", "flipped", "wrong checksum", "missing"}
	for i, object := range s.objects() {
		content, err := os.ReadFile(s.path(object))
		kit.Must(t, err)
		for name, damaged := range map[string][]byte{
			"truncated": content[:len(content)/2], "empty": {}, "flipped": flip(content, len(content)/2), "wrong checksum": flip(content, len(content)-1),
			"missing": nil,
		} {
			if name != kinds[i%len(kinds)] && name != kinds[(i+1)%len(kinds)] {
				continue // each object is damaged in two ways
			}
			kit.Must(t, os.WriteFile(s.path(object), damaged, 0o600))
			if damaged == nil {
				kit.Must(t, os.Remove(s.path(object)))
			}
			restored, err := try(last)
			if err == nil && restored.Revision < last || err != nil && !errors.Is(err, snapshot.ErrOlder) {
				t.Errorf("%s %s: restored %+v, %v", object.Key, name, restored, err)
			}
			if problems, err := s.opened().Verify(t.Context()); err != nil || problems.Complete && name != "missing" {
				t.Errorf("%s %s: verified: %+v, %v", object.Key, name, problems, err)
			}
			if err != nil {
				older, err := try(0)
				if err != nil || older.Revision >= last || name != "missing" && len(older.Notes) == 0 {
					t.Errorf("%s %s: accepted: restored %+v, %v", object.Key, name, older, err)
				}
			}
		}
		kit.Must(t, os.WriteFile(s.path(object), content, 0o600))
	}
	s.restore(e, last)
}

func flip(content []byte, at int) []byte {
	changed := append([]byte(nil), content...)
	changed[at] ^= 1
	return changed
}

package etcd

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
	"github.com/trellis-k8s/trellis/pkg/objectstore"
	"github.com/trellis-k8s/trellis/test/kit"
)

// saved is an Etcd with one member and a store in a directory.
type saved struct {
	*site
	p      *process
	bucket string
}

// newSaved declares the Etcd, and starts its member.
func newSaved(w *world) *saved {
	w.Helper()
	s := newSite(w, 1)
	buckets := w.TempDir()
	kit.Must(w, os.Mkdir(filepath.Join(buckets, "bucket"), 0o700))
	w.declare(func(e *druidv1alpha1.Etcd) {
		withTLS(e)
		e.Spec.Backup.Store = &druidv1alpha1.StoreSpec{Provider: ptr.To("local"), Container: ptr.To("bucket"), Prefix: "entry/etcd-main"}
		e.Spec.Backup.DeltaSnapshotPeriod = &metav1.Duration{Duration: time.Minute}
	})
	p := s.members[0]
	p.backup = &config.Backup{
		Store:       objectstore.Location{Provider: "local", Container: "bucket", Prefix: "entry/etcd-main", Directory: buckets},
		DeltaPeriod: metav1.Duration{Duration: 500 * time.Millisecond}, Port: kit.FreePort(w),
	}
	p.start()
	p.eventuallyReady()
	return &saved{site: s, p: p, bucket: filepath.Join(buckets, "bucket")}
}

// put writes a key and returns the revision.
func (s *saved) put(key, value string) int64 {
	s.Helper()
	answer, err := s.connect(s.p).Put(s.Context(), key, value)
	kit.Must(s, err)
	return answer.Header.Revision
}

// has checks the value of a key.
func (s *saved) has(key, value string) {
	s.Helper()
	answer, err := s.connect(s.p).Get(s.Context(), key)
	kit.Must(s, err)
	if len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != value {
		s.Errorf("%s is %v instead of %s", key, answer.Kvs, value)
	}
}

// stored waits until the Lease records that a revision is stored.
func (s *saved) stored(revision int64) {
	s.Helper()
	kit.Eventually(s, fmt.Sprintf("the revision %d is stored", revision), func() string {
		l := &coordinationv1.Lease{}
		if !s.get(l, lease.DeltaName(name)) {
			return "the Lease does not exist"
		}
		if stored := lease.ReadSnapshot(l); stored.Revision < revision {
			return fmt.Sprintf("%+v", stored)
		}
		return ""
	})
}

// loses kills the member, and removes its volume.
func (s *saved) loses() {
	s.Helper()
	s.p.kill()
	s.p.lose()
}

// waits checks that the member does not start without its data, and reports why.
func (s *saved) waits(why string) {
	s.Helper()
	kit.Eventually(s, "the member waits: "+why, func() string {
		if state := s.member(0).State; state.Reason != lease.ReasonDataLost || !strings.Contains(state.Message, why) {
			return fmt.Sprintf("it reports %q", state)
		}
		return ""
	})
	if files, _ := filepath.Glob(filepath.Join(s.p.directory, "new.etcd", "*")); len(files) > 0 {
		s.Errorf("a new cluster has the files %v", files)
	}
	s.p.kill()
}

// TestLostVolumeIsRestored loses and damages the data of the only member. They are restored from the backups up to the last stored
// change, never silently from older or other ones, and never replaced by an empty cluster.
func TestLostVolumeIsRestored(t *testing.T) {
	w := newWorld(t)
	_, stop := w.startOperator("v1")
	defer stop()
	s := newSaved(w)
	w.eventually(druidv1alpha1.ConditionTypeBackupReady, "True BackupSucceeded")
	s.put("a", "1")
	s.stored(s.put("b", "2"))
	first := w.member(0).Holder.ClusterID

	// The volume is lost. Clients that have seen later revisions notice it.
	s.loses()
	s.p.start()
	s.p.eventuallyReady()
	s.has("a", "1")
	s.has("b", "2")
	revision := s.put("c", "3")
	if revision < snapshot.RevisionBump {
		t.Errorf("the revision is %d after a restoration", revision)
	}
	if response := <-s.connect(s.p).Watch(t.Context(), "a", clientv3.WithRev(3)); response.CompactRevision == 0 {
		t.Errorf("a watch from an earlier revision continues: %+v", response)
	}
	kit.EventuallyTrue(t, "the Lease has the new cluster", func() bool { h := w.member(0).Holder; return h != nil && h.ClusterID != first })
	s.stored(revision)

	// The database is damaged. It is set aside.
	s.p.kill()
	database := filepath.Join(s.p.directory, "new.etcd", "member", "snap", "db")
	kit.Must(t, os.WriteFile(database, []byte(strings.Repeat("damaged", 1000)), 0o600))
	s.p.start()
	s.p.eventuallyReady()
	s.has("c", "3")
	if _, err := os.Stat(filepath.Join(s.p.directory, "new.etcd.damaged")); err != nil {
		t.Errorf("the damaged data are gone: %v", err)
	}

	// The store is another one: nothing starts.
	s.stored(s.put("d", "4"))
	s.loses()
	s.p.backup.Store.Prefix = "other/etcd-main"
	s.p.start()
	s.waits("the store has no backups of the cluster")
	s.p.backup.Store.Prefix, s.p.backup.Store.Container = "entry/etcd-main", "missing"
	s.p.start()
	s.waits("the store of the backups does not answer")
	s.p.backup.Store.Container = "bucket"
	s.p.start()
	s.p.eventuallyReady()
	s.has("d", "4")

	// A stored change is missing: nothing starts before the loss is accepted.
	s.stored(s.put("e", "5"))
	s.put("f", "6")
	s.stored(s.put("g", "7"))
	lost := w.member(0).Holder.ClusterID
	s.loses()
	deltas, err := filepath.Glob(filepath.Join(s.bucket, "entry", "etcd-main", "v1", "*", "delta-*"))
	kit.Must(t, err)
	kit.Must(t, os.Remove(slices.MaxFunc(deltas, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })))
	s.p.start()
	s.waits("the store has only older backups")
	w.eventually(druidv1alpha1.ConditionTypeReady, "False DataLost")
	w.change(func(e *druidv1alpha1.Etcd) { e.Annotations[etcd.AnnotationAcceptDataLoss] = lost })
	s.p.start()
	s.p.eventuallyReady()
	s.has("e", "5")
}

// TestLastChangesAreStored checks that a member stores the last changes when it is stopped, and that it takes snapshots on demand.
func TestLastChangesAreStored(t *testing.T) {
	w := newWorld(t)
	_, stop := w.startOperator("v1")
	defer stop()
	s := newSaved(w)
	s.stored(1)
	s.p.stop()
	s.p.backup.DeltaPeriod.Duration = time.Hour
	s.p.start()
	s.p.eventuallyReady()
	kit.Eventually(t, "a final snapshot is taken", func() string {
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: s.clientTLS, DisableKeepAlives: true}}
		url := fmt.Sprintf("https://127.0.0.1:%d/snapshot/full?final=true", s.p.backup.Port)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		kit.Must(t, err)
		response, err := client.Do(request)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		content, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		if response.StatusCode != http.StatusOK || !strings.Contains(string(content), `"kind":"final"`) {
			return fmt.Sprint(response.StatusCode, string(content))
		}
		return ""
	})
	s.put("last", "change")
	s.p.stop()
	s.p.lose()
	s.p.start()
	s.p.eventuallyReady()
	s.has("last", "change")
}

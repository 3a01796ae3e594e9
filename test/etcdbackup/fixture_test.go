package etcdbackup

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/etcd/backup"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// etcd is a running etcd with a single member.
type etcd struct {
	*testing.T
	*clientv3.Client
	url string
}

// start starts etcd with a data directory, which may exist.
func start(t *testing.T, directory string) *etcd {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	clientURL, peerURL := fmt.Sprintf("http://127.0.0.1:%d", kit.FreePort(t)), fmt.Sprintf("http://127.0.0.1:%d", kit.FreePort(t))
	log := &kit.Output{}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(root, "bin", "etcd"), "--name=e", "--data-dir="+directory,
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL, "--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL, "--initial-cluster=e="+peerURL, "--log-level=warn", "--unsafe-no-fsync")
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	kit.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("log of etcd:\n%s", log)
		}
	})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{clientURL}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	kit.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	e := &etcd{T: t, Client: client, url: clientURL}
	kit.EventuallyTrue(t, "etcd answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.Get(ctx, "x")
		return err == nil
	})
	return e
}

func (e *etcd) put(key, value string, options ...clientv3.OpOption) int64 {
	e.Helper()
	answer, err := e.Put(e.Context(), key, value, options...)
	kit.Must(e.T, err)
	return answer.Header.Revision
}

// content returns all keys with their values, revisions and versions at a revision; 0 for the current one.
func (e *etcd) content(revision int64) map[string]string {
	e.Helper()
	answer, err := e.Get(e.Context(), "", clientv3.WithPrefix(), clientv3.WithRev(revision))
	kit.Must(e.T, err)
	content := map[string]string{}
	for _, kv := range answer.Kvs {
		content[string(kv.Key)] = fmt.Sprintf("%s created %d changed %d version %d lease %x", kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease)
	}
	return content
}

// store is a store in a directory. It can be made to fail.
type store struct {
	*testing.T
	directory string
	mu        sync.Mutex
	failure   error
}

func newStore(t *testing.T) *store {
	t.Helper()
	return &store{T: t, directory: t.TempDir()}
}

func (s *store) open(context.Context) (snapshot.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return snapshot.Store{}, s.failure
	}
	bucket, err := fileblob.OpenBucket(s.directory, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return snapshot.Store{}, err
	}
	return snapshot.Store{Bucket: blob.PrefixedBucket(bucket, "entry/etcd-main/")}, nil
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

func (s *store) opened() snapshot.Store {
	s.Helper()
	opened, err := s.open(s.Context())
	kit.Must(s.T, err)
	s.Cleanup(func() { _ = opened.Bucket.Close() })
	return opened
}

func (s *store) objects() []snapshot.Object {
	s.Helper()
	objects, err := s.opened().List(s.Context())
	kit.Must(s.T, err)
	return objects
}

// path returns the file of an object.
func (s *store) path(object snapshot.Object) string {
	return filepath.Join(s.directory, "entry", "etcd-main", filepath.FromSlash(object.Key))
}

// restore restores the backups, starts etcd with them, and compares its content with that of another etcd at the same revision.
func (s *store) restore(of *etcd, atLeast int64) snapshot.Restored {
	s.Helper()
	directory := filepath.Join(s.TempDir(), "restored")
	restored, err := s.opened().Restore(s.Context(), snapshot.Target{
		AtLeast: atLeast, Name: "e", PeerURL: "http://127.0.0.1:1", Token: "t", Directory: directory,
	})
	kit.Must(s.T, err)
	again := start(s.T, directory)
	got, want := again.content(0), of.content(restored.Revision)
	for key, value := range want {
		if got[key] != value {
			s.Errorf("%s is %q instead of %q", key, got[key], value)
		}
	}
	if len(got) != len(want) {
		s.Errorf("%d keys are restored instead of %d", len(got), len(want))
	}
	return restored
}

// taker takes backups of an etcd until the test ends.
type taker struct {
	*backup.Taker

	mu     sync.Mutex
	report backup.Report
	stop   func()
}

func (e *etcd) takeBackups(in *store, cluster string, change func(*backup.Settings)) *taker {
	e.Helper()
	settings := backup.Settings{
		Full: cron.Every(time.Hour), Period: 200 * time.Millisecond, Limit: 1 << 20, Compression: snapshot.CompressionGzip, Collection: time.Hour,
		Timeout: time.Minute, Directory: filepath.Join(e.TempDir(), "spool"),
	}
	if change != nil {
		change(&settings)
	}
	t := &taker{}
	t.Taker = &backup.Taker{
		Settings: settings, Open: in.open, Etcd: e.Client, Endpoint: e.url, Cluster: func() string { return cluster },
		Follows: func(context.Context) (int, error) { return 0, nil },
		Report: func(_ context.Context, report backup.Report) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.report = report
			return nil
		},
		Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(&output{e.T}, nil)),
	}
	t.Prepare()
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		t.Run(ctx, func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		})
	})
	t.stop = func() {
		cancel()
		running.Wait()
	}
	e.Cleanup(t.stop)
	t.SetLeader(true)
	return t
}

func (k *taker) last() backup.Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.report
}

// stored waits until the store has all changes up to a revision.
func (k *taker) stored(t *testing.T, revision int64) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("the revision %d is stored", revision), func() string {
		if report := k.last(); report.Delta.Revision < revision {
			return fmt.Sprintf("%+v", report)
		}
		return ""
	})
}

// output is the log of a test.
type output struct{ *testing.T }

func (o *output) Write(content []byte) (int, error) {
	o.Logf("%s", content)
	return len(content), nil
}

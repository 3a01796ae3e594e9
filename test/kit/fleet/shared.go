package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

// Shared is one cluster of a Seed for all tests of a package, which use it one after the other. The start of a cluster takes half of the CPU
// time of a typical test.
type Shared struct {
	// Gardens is the garden of the package, and Options are those of the cluster.
	Gardens *garden.Shared
	Options controlplane.Options
	// Prepare creates what all tests find in the cluster. It is called once.
	Prepare func(t *testing.T, f *Fleet)

	once  sync.Once
	seeds *controlplane.ControlPlane
	etcd  *clientv3.Client
	// kept are the keys in etcd that exist between tests.
	kept map[string]bool
	err  error
}

const (
	// keysSettle is how long the keys in etcd must not change to be considered complete.
	keysSettle = 500 * time.Millisecond
	etcdPoll   = 100 * time.Millisecond
)

// Get returns the cluster. When the test ends, after all functions that the test has registered since, everything is deleted that it has
// created.
func (s *Shared) Get(t *testing.T) *Fleet {
	t.Helper()
	gardens := s.Gardens.Get(t) // skips the test if there is no control plane
	s.once.Do(func() { s.seeds, s.err = controlplane.Start(context.Background(), s.Options) })
	kit.Must(t, s.err)
	f := newFleet(t, gardens, s.seeds)
	if s.kept == nil {
		s.prepare(t, f)
	}
	t.Cleanup(func() {
		if err := s.reset(context.WithoutCancel(t.Context())); err != nil {
			s.err = fmt.Errorf("the cluster that the tests share is not as it was before %s: %w", t.Name(), err)
			t.Error(s.err)
		}
	})
	return f
}

// Run runs the package's tests, stops the cluster and the garden, and returns the exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.seeds != nil {
		if err := s.seeds.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return s.Gardens.Stop(code)
}

func (s *Shared) prepare(t *testing.T, f *Fleet) {
	t.Helper()
	s.Prepare(t, f)
	s.etcd, s.err = clientv3.New(clientv3.Config{Endpoints: []string{s.seeds.EtcdURL().String()}, DialTimeout: kit.WaitTimeout, Logger: zap.NewNop()})
	kit.Must(t, s.err)
	steady := kit.Steady(keysSettle)
	kit.EventuallyTrue(t, "the objects of the cluster are complete", func() bool {
		keys, err := s.keys(t.Context())
		kit.Must(t, err)
		s.kept = keys
		return steady(len(keys))
	})
}

// keys returns the keys of all objects in etcd. It omits those that the API server creates itself at any time.
func (s *Shared) keys(ctx context.Context) (map[string]bool, error) {
	answer, err := s.etcd.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("list the keys in etcd: %w", err)
	}
	keys := map[string]bool{}
	for _, pair := range answer.Kvs {
		if key := string(pair.Key); !slices.ContainsFunc(ownedByServer(), func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			keys[key] = true
		}
	}
	return keys, nil
}

// ownedByServer returns the prefixes of the keys of objects that the API server and kwok create again.
func ownedByServer() []string {
	return []string{"compact_rev_key", "/registry/apiregistration.k8s.io/", "/registry/leases/kube-", "/registry/masterleases/"}
}

// reset deletes the keys of all objects that were created since prepare, without finalizers and grace periods. Those who watch the objects see
// that they are deleted. The controllers of the cluster may create some of them a last time, so reset ends when none appears any more.
func (s *Shared) reset(ctx context.Context) error {
	var left, lost []string
	quiet := false
	err := wait.PollUntilContextTimeout(ctx, etcdPoll, kit.WaitTimeout, true, func(ctx context.Context) (bool, error) {
		keys, err := s.keys(ctx)
		if err != nil {
			return false, err
		}
		left, lost = nil, nil
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if !s.kept[key] {
				left = append(left, key)
			}
		}
		for key := range s.kept {
			if !keys[key] {
				lost = append(lost, key)
			}
		}
		for _, key := range left {
			if _, err := s.etcd.Delete(ctx, key); err != nil {
				return false, fmt.Errorf("delete %s from etcd: %w", key, err)
			}
		}
		ended := quiet && len(left)+len(lost) == 0
		quiet = len(left)+len(lost) == 0
		return ended, nil
	})
	if err != nil {
		err = errors.Join(err, fmt.Errorf("keys that come back: %v; keys that were deleted: %v", left, lost))
	}
	return err
}

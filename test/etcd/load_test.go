package etcd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-k8s/trellis/test/kit"
)

// load writes keys until it is stopped, and records the acknowledged ones.
type load struct {
	site *site
	stop context.CancelFunc
	done sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]string
	failed       int
	last         time.Time
	longest      time.Duration
}

const writers = 4

// startLoad starts writers to all members, running or not.
func (s *site) startLoad() *load {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	l := &load{site: s, stop: cancel, acknowledged: map[string]string{}, last: time.Now()}
	for w := range writers {
		client := s.connect(s.members...)
		l.done.Go(func() { l.write(ctx, client, w) })
	}
	s.Cleanup(l.end)
	return l
}

func (l *load) write(ctx context.Context, client *clientv3.Client, writer int) {
	filling := strings.Repeat("x", 512)
	for i := 0; ctx.Err() == nil; i++ {
		key, value := fmt.Sprintf("/load/%d/%06d", writer, i), fmt.Sprintf("%d-%d-%s", writer, i, filling)
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := client.Put(attempt, key, value)
		cancel()
		l.mu.Lock()
		if err == nil {
			l.acknowledged[key] = value
			l.longest = max(l.longest, time.Since(l.last))
			l.last = time.Now()
		} else {
			l.failed++
		}
		l.mu.Unlock()
	}
}

// count returns the number of acknowledged writes.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// goesOn waits until more writes are acknowledged.
func (l *load) goesOn() {
	l.site.Helper()
	before := l.count()
	kit.EventuallyTrue(l.site, "writes are acknowledged", func() bool { return l.count() > before+20 })
}

func (l *load) end() {
	l.stop()
	l.done.Wait()
}

// verify stops the load, and reads all acknowledged keys.
func (l *load) verify() {
	l.site.Helper()
	l.end()
	found := map[string]string{}
	client := l.site.connect(l.site.members...)
	for writer := range writers {
		answer, err := client.Get(l.site.Context(), fmt.Sprintf("/load/%d/", writer), clientv3.WithPrefix())
		kit.Must(l.site, err)
		for _, kv := range answer.Kvs {
			found[string(kv.Key)] = string(kv.Value)
		}
	}
	lost := 0
	for key, value := range l.acknowledged {
		if found[key] != value {
			lost++
		}
	}
	if lost > 0 || len(l.acknowledged) == 0 {
		l.site.Errorf("%d of %d acknowledged writes are lost", lost, len(l.acknowledged))
	}
	l.site.Logf("%d writes acknowledged, %d lost, %d failed and were not retried; longest time without an acknowledged write: %s",
		len(l.acknowledged), lost, l.failed, l.longest.Round(time.Millisecond))
}

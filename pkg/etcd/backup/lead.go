package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
)

// leading is the state of a member that leads. Only the goroutine of loop uses it. Operations run in other goroutines, and send
// a function with their result to done.
type leading struct {
	*Taker

	epoch snapshot.Epoch
	state
	report Report
	// failures counts the failed attempts of an action, and errs are their errors.
	failures map[action]int
	errs     map[action]error

	watch       clientv3.WatchChan
	stopWatch   context.CancelFunc
	spool, kept *snapshot.Spool
	sealedAt    time.Time
	// last is the revision of the last received change.
	last int64

	done    chan func()
	running int
}

// SetLeader reports whether the member leads a majority. It does not block.
func (t *Taker) SetLeader(leads bool) {
	for {
		select {
		case t.leads <- leads:
			return
		default:
		}
		select {
		case <-t.leads: // replace an outdated value
		default:
		}
	}
}

// Prepare must be called before Run and SetLeader.
func (t *Taker) Prepare() { t.leads = make(chan bool, 1) }

// Run takes snapshots while the member leads, until the context ends. The changes that are received by then are stored until the
// context ends that drain returns.
func (t *Taker) Run(ctx context.Context, drain func() (context.Context, context.CancelFunc)) {
	var current *term
	for {
		select {
		case <-ctx.Done():
			current.end()
			return
		case leads := <-t.leads:
			switch {
			case !leads:
				current.end()
				current = nil
			case current == nil:
				current = t.start(ctx, drain)
			}
		}
	}
}

// term is the time in which a member leads.
type term struct {
	stop  context.CancelFunc
	ended chan struct{}
}

// end ends a term and waits until it has ended. It does nothing for nil.
func (t *term) end() {
	if t != nil {
		t.stop()
		<-t.ended
	}
}

// start begins a term. If another member leads next, it goes on from what is stored, so nothing is drained then.
func (t *Taker) start(ctx context.Context, drain func() (context.Context, context.CancelFunc)) *term {
	leads, stop := context.WithCancel(ctx)
	begun := &term{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(begun.ended)
		t.lead(leads, func() (context.Context, context.CancelFunc) {
			if ctx.Err() == nil {
				return context.WithCancel(leads)
			}
			return drain()
		})
	}()
	return begun
}

// lead takes snapshots until the context ends.
func (t *Taker) lead(ctx context.Context, drain func() (context.Context, context.CancelFunc)) {
	for failed := 1; ; failed++ {
		l, err := t.begin(ctx)
		if err == nil {
			l.loop(ctx)
			l.end(drain) //nolint:contextcheck // the context of the term has ended
			return
		}
		if ctx.Err() != nil {
			return
		}
		t.Log.Warn("Cannot take backups", "error", err.Error())
		t.Metrics.failed()
		t.send(ctx, Report{Error: err.Error()})
		if !t.sleep(ctx, backoff(failed)) {
			return
		}
	}
}

// end stores the changes that were received, until the context of drain ends.
func (l *leading) end(drain func() (context.Context, context.CancelFunc)) {
	ctx, cancel := drain()
	defer cancel()
	l.finish(ctx)
}

func (t *Taker) sleep(ctx context.Context, duration time.Duration) bool {
	timer := t.Clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// send stores a report. An error is only logged, because the next report replaces it.
func (t *Taker) send(ctx context.Context, report Report) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	report = t.merge(report)
	t.Metrics.observe(report)
	if err := t.Report(ctx, report); err != nil && ctx.Err() == nil {
		t.Log.Warn("Cannot report the state of the backups", "error", err.Error())
	}
}

// merge returns a report with the latest points, because a snapshot on demand may be newer than those of the leader.
func (t *Taker) merge(report Report) Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !report.Full.Time.IsZero() && report.Full.Time.After(t.latest.Full.Time) {
		t.latest.Full = report.Full
	}
	if !report.Delta.Time.IsZero() && report.Delta.Time.After(t.latest.Delta.Time) {
		t.latest.Delta = report.Delta
	}
	t.latest.Error = report.Error
	return t.latest
}

// begin claims the epoch and finds the end of the chain in the store.
func (t *Taker) begin(ctx context.Context) (*leading, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	store, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Bucket.Close() }()
	epoch, err := t.claim(ctx, store)
	if err != nil {
		return nil, err
	}
	objects, err := store.List(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(t.Settings.Directory), os.MkdirAll(t.Settings.Directory, 0o700)); err != nil {
		return nil, fmt.Errorf("prepare the directory for changes: %w", err)
	}
	l := &leading{
		Taker: t, epoch: epoch, done: make(chan func(), 4), failures: map[action]int{}, errs: map[action]error{},
		state: state{gap: true, size: -1, busy: map[action]bool{}, notBefore: map[action]time.Time{}, collected: t.Clock.Now()},
	}
	if chains := snapshot.Chains(objects, epoch.Number); len(chains) > 0 {
		full := chains[0].Full
		l.lastFull, l.report.Full = full.Created, Point{full.Last, full.Created}
		if chains[0].Missing == 0 {
			l.gap = false
			if err := l.restart(chains[0].Last); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// claim returns the epoch of the cluster.
func (t *Taker) claim(ctx context.Context, store snapshot.Store) (snapshot.Epoch, error) {
	cluster := t.Cluster()
	if cluster == "" {
		return snapshot.Epoch{}, errors.New("the identifier of the cluster is not known yet")
	}
	follows, err := t.Follows(ctx)
	if err != nil {
		return snapshot.Epoch{}, err
	}
	return store.Claim(ctx, cluster, follows, t.Clock.Now())
}

// restart begins to collect the changes after a revision.
func (l *leading) restart(after int64) error {
	l.drop()
	spool, err := snapshot.NewSpool(l.Settings.Directory, after)
	if err != nil {
		return err
	}
	l.spool, l.last, l.size = spool, after, 0
	return nil
}

// drop gives up the changes that are not being stored, and the watch.
func (l *leading) drop() {
	l.unwatch()
	if l.spool != nil {
		l.spool.Close()
	}
	l.spool, l.size = nil, -1
	l.succeeded(actionUpload) // there is nothing to repeat
	l.succeeded(actionConfirm)
	if l.kept != nil && !l.busy[actionUpload] {
		l.kept.Close()
		l.kept, l.sealed = nil, false
	}
}

func (l *leading) unwatch() {
	if l.stopWatch != nil {
		l.stopWatch()
	}
	l.watch, l.stopWatch, l.watching = nil, nil, false
}

// lose records that changes are missing.
func (l *leading) lose(why string) {
	l.Log.Warn("Changes of etcd are missing in the backups, so a full snapshot is taken", "reason", why)
	l.drop()
	l.gap = true
}

// loop starts due actions, and receives changes and results, until the context ends.
func (l *leading) loop(ctx context.Context) {
	for {
		actions, next := decide(l.state, l.Settings, l.Clock.Now())
		for _, what := range actions {
			l.start(ctx, what)
		}
		if len(actions) > 0 {
			continue
		}
		var due <-chan time.Time
		if !next.IsZero() {
			timer := l.Clock.NewTimer(next.Sub(l.Clock.Now()))
			due = timer.C()
			l.wait(ctx, due)
			timer.Stop()
		} else {
			l.wait(ctx, due)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (l *leading) wait(ctx context.Context, due <-chan time.Time) {
	select {
	case <-ctx.Done():
	case <-due:
	case result := <-l.done:
		l.running--
		result()
	case response, open := <-l.watch:
		l.receive(response, open)
	}
}

// receive adds changes to the spool.
func (l *leading) receive(response clientv3.WatchResponse, open bool) {
	err := response.Err()
	switch {
	case response.CompactRevision > 0:
		l.lose(fmt.Sprintf("etcd has compacted its history up to the revision %d", response.CompactRevision))
		return
	case !open || err != nil:
		l.unwatch() // it continues where it ended
		l.retry(actionWatch, errors.Join(errors.New("the watch of changes has ended"), err))
		return
	}
	if err := l.spool.Append(response.Events); err != nil {
		l.lose(err.Error())
		return
	}
	l.last, l.size = l.spool.Last, l.spool.Size
	if len(response.Events) > 0 {
		l.succeeded(actionWatch)
	}
}

// retry records that an action has failed.
func (l *leading) retry(what action, err error) {
	l.failures[what]++
	l.errs[what] = err
	l.notBefore[what] = l.Clock.Now().Add(backoff(l.failures[what]))
	if errors.Is(err, errBehind) && l.failures[what] < behindTolerated {
		delete(l.errs, what) // changes were made meanwhile
		l.notBefore[what] = l.Clock.Now().Add(minRetry)
	}
}

// succeeded records that an action has not failed.
func (l *leading) succeeded(what action) {
	delete(l.failures, what)
	delete(l.errs, what)
	delete(l.notBefore, what)
}

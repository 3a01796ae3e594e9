package backup

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
)

// start starts an action. Those that wait for etcd or for the store run concurrently.
func (l *leading) start(ctx context.Context, what action) {
	switch what {
	case actionDrop:
		l.lose("the store does not take them, and they reached the limit of the disk")
	case actionWatch:
		watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
		l.watch = l.Etcd.Watch(watching, "", clientv3.WithPrefix(), clientv3.WithRev(l.last+1), clientv3.WithFragment())
		l.stopWatch, l.watching = stop, true
	case actionSeal:
		l.seal()
	case actionUpload:
		l.upload(ctx)
	case actionConfirm:
		l.confirm(ctx)
	case actionFull:
		l.full(ctx)
	case actionCollect:
		l.background(ctx, actionCollect, func(ctx context.Context) error { return l.collect(ctx) }, func() { l.collected = l.Clock.Now() })
	}
}

// background runs an operation, and then success in the goroutine of loop. It reports errors.
func (l *leading) background(ctx context.Context, what action, do func(context.Context) error, success func()) {
	l.busy[what] = true
	l.running++
	go func() {
		err := do(ctx)
		l.done <- func() {
			delete(l.busy, what)
			if err != nil && ctx.Err() != nil {
				return
			}
			switch {
			case errors.Is(err, errBehind):
				l.retry(what, err)
				if l.failures[what] >= behindTolerated {
					l.unwatch()
				}
			case err != nil:
				l.Log.Warn("A step of the backups failed", "step", string(what), "error", err.Error())
				l.Metrics.failed()
				l.retry(what, err)
			default:
				l.succeeded(what)
				success()
			}
			l.publish(ctx)
		}
	}()
}

// publish reports the state of the backups.
func (l *leading) publish(ctx context.Context) {
	var all []error
	for _, what := range []action{actionFull, actionUpload, actionConfirm, actionWatch, actionCollect} {
		all = append(all, l.errs[what])
	}
	l.report.Error = ""
	if err := errors.Join(all...); err != nil {
		l.report.Error = err.Error()
	}
	report := l.report
	if l.gap {
		report.Delta = Point{} // it has no full snapshot to continue yet
	}
	l.send(ctx, report)
}

// seal begins a new spool.
func (l *leading) seal() {
	next, err := snapshot.NewSpool(l.Settings.Directory, l.last)
	if err != nil {
		l.retry(actionSeal, err)
		return
	}
	l.succeeded(actionSeal)
	l.kept, l.spool = l.spool, next
	l.sealed, l.size, l.sealedAt = true, 0, l.Clock.Now()
}

// upload stores the sealed changes.
func (l *leading) upload(ctx context.Context) {
	spool, at := l.kept, l.sealedAt
	l.background(ctx, actionUpload, func(ctx context.Context) error {
		return l.Metrics.measure(string(snapshot.KindDelta), func() error { return l.delta(ctx, l.epoch, spool, at) })
	}, func() {
		spool.Close()
		l.kept, l.sealed = nil, false
		l.lastDelta, l.report.Delta = at, Point{spool.Last, at}
	})
}

// delta stores the changes of a spool.
func (t *Taker) delta(ctx context.Context, epoch snapshot.Epoch, spool *snapshot.Spool, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, t.Settings.Timeout)
	defer cancel()
	ttls, err := t.leases(ctx, spool)
	if err != nil {
		return err
	}
	store, err := t.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Bucket.Close() }()
	_, err = store.PutDelta(ctx, snapshot.Written{Epoch: epoch, Compression: t.Settings.Compression, Now: at}, spool, ttls)
	return err
}

// leases returns for how many seconds the leases of changes were granted. Leases that have expired get one second.
func (t *Taker) leases(ctx context.Context, spool *snapshot.Spool) (map[int64]int64, error) {
	ttls := map[int64]int64{}
	for id := range spool.Leases {
		request, cancel := context.WithTimeout(ctx, requestTimeout)
		answer, err := t.Etcd.TimeToLive(request, clientv3.LeaseID(id))
		cancel()
		if err != nil {
			return nil, err
		}
		ttls[id] = max(answer.GrantedTTL, 1)
	}
	return ttls, nil
}

// revision returns the current revision of the cluster. It needs a majority.
func (t *Taker) revision(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := t.Etcd.Get(ctx, "backup", clientv3.WithKeysOnly())
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// errBehind means that changes have not been received yet.
var errBehind = errors.New("the watch of changes is behind")

// behindTolerated is the number of attempts after which the watch is replaced.
const behindTolerated = 5

// confirm renews the report of the delta snapshots if nothing has changed.
func (l *leading) confirm(ctx context.Context) {
	last, at := l.last, l.Clock.Now()
	l.background(ctx, actionConfirm, func(ctx context.Context) error {
		revision, err := l.revision(ctx)
		if err == nil && revision > last {
			err = errBehind
		}
		return err
	}, func() { l.lastDelta, l.report.Delta = at, Point{last, at} })
}

// full takes a full snapshot. If changes are missing, they are received again from its revision on.
func (l *leading) full(ctx context.Context) {
	at := l.Clock.Now()
	var object snapshot.Object
	l.background(ctx, actionFull, func(ctx context.Context) error {
		revision, err := l.revision(ctx)
		if err != nil {
			return err
		}
		begun := make(chan error, 1)
		l.done <- func() {
			l.running++ // this function is not the result of an operation
			if l.gap && l.spool == nil {
				begun <- l.restart(revision)
				return
			}
			begun <- nil
		}
		select {
		case err = <-begun:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err == nil {
			object, err = l.Taker.full(ctx, l.epoch, revision, false, at)
		}
		return err
	}, func() {
		l.lastFull, l.report.Full = at, Point{object.Last, at}
		if l.gap = l.spool == nil; !l.gap && l.lastDelta.IsZero() {
			l.lastDelta = at
		}
		if object.Last > l.report.Delta.Revision {
			l.report.Delta = Point{object.Last, at}
		}
	})
}

// full stores a full snapshot that contains a revision.
func (t *Taker) full(ctx context.Context, epoch snapshot.Epoch, revision int64, final bool, at time.Time) (object snapshot.Object, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Settings.Timeout)
	defer cancel()
	err = t.Metrics.measure(string(snapshot.KindFull), func() error {
		store, err := t.Open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = store.Bucket.Close() }()
		stream, err := t.Etcd.SnapshotWithVersion(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = stream.Snapshot.Close() }()
		written := snapshot.Written{Epoch: epoch, Compression: t.Settings.Compression, EtcdVersion: stream.Version, Final: final, Now: at}
		object, err = store.PutFull(ctx, written, revision, stream.Snapshot)
		return err
	})
	return object, err
}

// Full takes a full snapshot now, on any member. It contains all changes that were acknowledged before the call. After a final
// one, the cluster must not change any more.
func (t *Taker) Full(ctx context.Context, final bool) (snapshot.Object, error) {
	at := t.Clock.Now()
	store, err := t.Open(ctx)
	if err != nil {
		return snapshot.Object{}, err
	}
	epoch, err := t.claim(ctx, store)
	if err := errors.Join(err, store.Bucket.Close()); err != nil {
		return snapshot.Object{}, err
	}
	revision, err := t.revision(ctx)
	if err != nil {
		return snapshot.Object{}, err
	}
	object, err := t.full(ctx, epoch, revision, final, at)
	if err == nil {
		t.send(ctx, Report{Full: Point{object.Last, at}, Delta: Point{object.Last, at}})
	}
	return object, err
}

// collect deletes snapshots that the policy does not keep.
func (t *Taker) collect(ctx context.Context) error {
	store, err := t.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Bucket.Close() }()
	objects, err := store.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range snapshot.Garbage(objects, t.Settings.Policy, t.Clock.Now()) {
		err := store.Delete(ctx, object)
		t.Metrics.collected(string(object.Kind), err)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// finish waits for running operations, and stores the changes that were received.
func (l *leading) finish(ctx context.Context) {
	defer l.drop()
	for l.running > 0 {
		result := <-l.done
		l.running--
		result()
	}
	if l.gap || l.spool == nil || ctx.Err() != nil {
		return
	}
	if l.sealed && l.delta(ctx, l.epoch, l.kept, l.sealedAt) != nil {
		return
	}
	revision, err := l.revision(ctx)
	if err != nil {
		return
	}
	watch := l.Etcd.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(l.last+1), clientv3.WithFragment())
	for l.last < revision {
		response, open := <-watch
		if !open || response.Err() != nil || l.spool.Append(response.Events) != nil {
			return
		}
		l.last = l.spool.Last
	}
	at := l.Clock.Now()
	if l.spool.Empty() || l.delta(ctx, l.epoch, l.spool, at) == nil {
		l.report.Delta, l.report.Error = Point{l.last, at}, ""
		l.send(ctx, l.report)
	}
}

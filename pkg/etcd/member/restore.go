package member

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
	"github.com/trellis-k8s/trellis/pkg/objectstore/open"
)

// openStore opens the store with the current credentials.
func (m *Member) openStore(ctx context.Context) (snapshot.Store, error) {
	bucket, err := open.Bucket(ctx, m.config.Backup.Store)
	return snapshot.Store{Bucket: bucket}, err
}

// inStore calls do with the store.
func (m *Member) inStore(ctx context.Context, do func(snapshot.Store) error) error {
	store, err := m.openStore(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Bucket.Close())
}

// own returns the Lease of the member.
func (m *Member) own(members []lease.Member) lease.Member {
	for _, member := range members {
		if member.Name == m.name {
			return member
		}
	}
	return lease.Member{}
}

// recover returns how a member begins that has no data, and that no other member can give them to. d is the decision without backups.
func (m *Member) recover(ctx context.Context, d decision, members []lease.Member) (start, lease.State) {
	own := m.own(members)
	k := known{
		clusters: d.clusters, acceptedLoss: own.AcceptedLoss, acceptEmpty: own.AcceptEmpty, declared: own.Restore,
	}
	waiting := lease.State{Reason: lease.ReasonJoining}
	if len(d.clusters) > 0 {
		waiting.Reason = lease.ReasonDataLost
	}
	var err error
	if k.stored, err = m.leases.snapshot(ctx, lease.DeltaName(m.config.Etcd)); err != nil {
		waiting.Message = err.Error()
		return start{}, waiting
	}
	err = m.inStore(ctx, func(store snapshot.Store) error {
		var err error
		k.epochs, err = store.Epochs(ctx)
		return err
	})
	if err != nil {
		waiting.Message = "the volume has no data, and the store of the backups does not answer: " + err.Error()
		return start{}, waiting
	}
	r := decideRecovery(k)
	switch {
	case r.wait != "":
		waiting.Reason, waiting.Message = lease.ReasonDataLost, "the volume has no data, and "+r.wait
		return start{}, waiting
	case !r.restore:
		if err := m.data.remember(identity{Follows: r.follows}); err != nil {
			waiting.Message = err.Error()
			return start{}, waiting
		}
		m.setFollows(r.follows)
		return m.form(), lease.State{}
	}
	if err := m.restore(ctx, r); err != nil {
		waiting.Reason, waiting.Message = lease.ReasonDataLost, "the volume has no data, and the backups cannot be restored: "+err.Error()
		if errors.Is(err, snapshot.ErrOlder) {
			waiting.Message += ". Changes that were stored are missing in the store. To restore what it has, accept the loss of the others"
		}
		return start{}, waiting
	}
	return m.resume(), lease.State{}
}

// restore creates the data directory from the latest backups.
func (m *Member) restore(ctx context.Context, r recovery) error {
	m.mu.Lock()
	failed := m.state.Reason == lease.ReasonDataLost
	m.mu.Unlock()
	if !failed { // the previous attempt explains more
		m.explain(ctx, lease.State{Reason: lease.ReasonRestoring, Message: "the data are restored from the backups"})
	}
	// The new cluster continues the epoch. This is recorded before its data exist.
	if err := m.data.remember(identity{Follows: r.follows}); err != nil {
		return err
	}
	var restored snapshot.Restored
	err := m.inStore(ctx, func(store snapshot.Store) error {
		var err error
		restored, err = store.Restore(ctx, snapshot.Target{
			AtLeast: r.atLeast, Name: m.name, PeerURL: m.peerURL, Token: "etcd-cluster-" + rand.Text(), Directory: m.data.etcdDirectory(),
			Bump: snapshot.RevisionBump,
		})
		return err
	})
	debug.FreeOSMemory() // the index of all keys was in memory
	if err != nil {
		return err
	}
	m.setFollows(r.follows)
	m.log.Info("Restored the data from the backups", "cluster", restored.Epoch.Cluster, "epoch", restored.Epoch.Number,
		"revision", restored.Revision, "notes", strings.Join(restored.Notes, "; "))
	return nil
}

// keepOrReplace decides what happens to damaged data. They are set aside if others can replace them: backups that are not
// older, or the other members. It returns why they are kept.
func (m *Member) keepOrReplace(ctx context.Context, why error, revision int64) lease.State {
	state := lease.State{Reason: lease.ReasonDamaged}
	members, err := m.leases.list(ctx)
	if err != nil {
		state.Message = errors.Join(why, err).Error()
		return state
	}
	if len(members) == 1 {
		var last int64
		err := m.inStore(ctx, func(store snapshot.Store) error {
			var err error
			last, err = store.Last(ctx)
			return err
		})
		switch {
		case err != nil:
			state.Message = errors.Join(why, err).Error()
			return state
		case revision > last:
			state.Message = fmt.Sprintf("%v. They are not replaced, because their revision %d is newer than that of the backups, %d. "+
				"Repair them, or remove the directory %s to restore the backups", why, revision, last, m.data.etcdDirectory())
			return state
		}
	}
	m.log.Warn("Setting damaged data aside", "error", why.Error(), "directory", m.data.damagedDir())
	if err := m.data.setAside(); err != nil {
		state.Message = err.Error()
		return state
	}
	return lease.State{}
}

// follows returns the epoch of the backups that the cluster continues or replaces.
func (m *Member) follows(ctx context.Context) (int, error) {
	m.mu.Lock()
	own, cluster := m.followed, m.cluster
	m.mu.Unlock()
	if own > 0 {
		return own, nil
	}
	members, err := m.leases.list(ctx)
	if err != nil {
		return 0, err
	}
	for _, member := range members {
		id, number, found := strings.Cut(member.Follows, "/")
		if parsed, err := strconv.Atoi(number); found && err == nil && id == cluster {
			return parsed, nil
		}
	}
	return 0, nil
}

func (m *Member) setFollows(epoch int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.followed = epoch
}

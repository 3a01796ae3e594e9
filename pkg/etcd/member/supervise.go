package member

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// healthKey is read to check the quorum. It need not exist.
const healthKey = "health"

// supervise checks etcd and reports its state until the context ends.
func (m *Member) supervise(ctx context.Context) {
	for {
		pause := m.config.Heartbeat.Duration
		if why := m.check(ctx); why.Reason != "" {
			m.setLeader(false)
			m.explain(ctx, why)
			pause = retry
			if why.Reason == lease.ReasonStarting {
				pause = startRetry
			}
		} else if !m.isRecorded() {
			pause = retry
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// check checks etcd, completes its membership, and renews the Lease. It returns why the member does not serve.
func (m *Member) check(ctx context.Context) lease.State {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	status, err := m.etcd.Status(ctx, m.localURL())
	if err != nil {
		return lease.State{Reason: lease.ReasonStarting, Message: "etcd does not respond"}
	}
	id := status.Header.MemberId
	if status.IsLearner {
		return m.learn(ctx, id)
	}
	if err := m.quorate(ctx); err != nil {
		return lease.State{Reason: lease.ReasonUnhealthy, Message: "the member has no quorum"}
	}
	list, err := m.etcd.MemberList(ctx)
	if err != nil {
		return lease.State{Reason: lease.ReasonUnhealthy, Message: "etcd does not list its members"}
	}
	now := identity{MemberID: hex(id), ClusterID: hex(status.Header.ClusterId)}
	m.mu.Lock()
	m.cluster, now.Follows = now.ClusterID, m.followed
	m.mu.Unlock()
	for _, member := range list.Members {
		if member.ID != id {
			now.Endpoints = append(now.Endpoints, member.ClientURLs...)
			continue
		}
		// The scheme changes when peer certificates are added.
		if !slices.Equal(member.PeerURLs, []string{m.peerURL}) {
			if _, err := m.etcd.MemberUpdate(ctx, id, []string{m.peerURL}); err != nil {
				return lease.State{Reason: lease.ReasonUnhealthy, Message: "etcd rejects the peer URL: " + err.Error()}
			}
		}
	}
	slices.Sort(now.Endpoints)
	if err := m.renew(ctx, now, status.Leader == id); err != nil {
		m.log.Warn("Cannot renew the Lease", "error", err.Error())
	}
	m.setLeader(status.Leader == id)
	return lease.State{}
}

// setLeader starts or ends the backups of the member.
func (m *Member) setLeader(leads bool) {
	m.mu.Lock()
	taker := m.taker
	m.mu.Unlock()
	if taker != nil {
		taker.SetLeader(leads)
	}
}

// learn requests the promotion of the member to a voter.
func (m *Member) learn(ctx context.Context, id uint64) lease.State {
	members, err := m.leases.list(ctx)
	if err != nil {
		return lease.State{Reason: lease.ReasonJoining, Message: err.Error()}
	}
	decision := decide(m.name, m.first(), members)
	if err := m.promote(ctx, id, decision.endpoints); err != nil {
		return lease.State{Reason: lease.ReasonJoining, Message: "the member is not a voter yet: " + err.Error()}
	}
	return lease.State{Reason: lease.ReasonJoining, Message: "the member has become a voter"}
}

// quorate returns an error unless this member has a quorum.
func (m *Member) quorate(ctx context.Context) error {
	_, err := m.etcd.Get(ctx, healthKey, clientv3.WithKeysOnly())
	return err
}

// renew writes the state of etcd to the Lease and to the volume, and starts a defragmentation if the operator requests
// one.
func (m *Member) renew(ctx context.Context, now identity, leads bool) error {
	m.mu.Lock()
	finished, taken := m.defragmented, m.snapshotted
	m.mu.Unlock()
	renewed := m.now()
	r := report{
		holder: &lease.Holder{ID: now.MemberID, ClusterID: now.ClusterID, Leader: leads}, renewed: &renewed,
		annotations: map[string]string{
			lease.AnnotationState: "", lease.AnnotationClientURL: m.clientURL, lease.AnnotationTLS: fmt.Sprint(m.peerTLS()),
		},
	}
	if finished != nil {
		r.annotations[lease.AnnotationDefragmented], r.annotations[lease.AnnotationDefragmentError] = finished.value, finished.err
	}
	if taken != nil {
		r.annotations[lease.AnnotationSnapshotError] = taken.err
		if taken.err == "" {
			r.annotations[lease.AnnotationSnapshotTaken] = taken.value
		}
	}
	if now.Follows > 0 {
		r.annotations[lease.AnnotationFollows] = fmt.Sprintf("%s/%d", now.ClusterID, now.Follows)
	}
	now.Recorded = m.isRecorded()
	updated, err := m.leases.write(ctx, r)
	if err == nil {
		now.Recorded = true
		m.written(finished)
		m.defragment(ctx, updated)
		m.takeRequested(ctx, updated, leads)
	}
	if before, readErr := m.data.identity(); readErr != nil || !before.equal(now) {
		err = errors.Join(err, m.data.remember(now))
	}
	m.mu.Lock()
	m.recorded = now.Recorded
	m.mu.Unlock()
	return err
}

// written records that the Lease reports the member as serving.
func (m *Member) written(reported *result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.unwritten = lease.State{}, false
	if m.defragmented == reported {
		m.defragmented = nil
	}
}

func (m *Member) isRecorded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recorded
}

func (m *Member) peerTLS() bool { return len(m.peerURL) > 6 && m.peerURL[:6] == "https:" }

// defragment starts a defragmentation that the operator requests and that was not executed yet. Etcd answers few
// requests during a defragmentation, so the Lease is renewed concurrently.
func (m *Member) defragment(ctx context.Context, own lease.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own.Defragment == "" || own.Defragment == own.Defragmented || m.defragmenting == own.Defragment {
		return
	}
	m.defragmenting = own.Defragment
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.config.DefragmentTimeout.Duration)
		defer cancel()
		m.log.Info("Defragmenting the database", "requested", own.Defragment)
		done := &result{value: own.Defragment}
		if _, err := m.etcd.Defragment(ctx, m.localURL()); err != nil {
			done.err = err.Error()
		}
		m.log.Info("Defragmented the database", "requested", own.Defragment, "error", done.err)
		m.mu.Lock()
		m.defragmented = done
		m.mu.Unlock()
	}()
}

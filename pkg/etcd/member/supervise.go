package member

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// healthKey is read to see whether a majority answers. It need not exist.
const healthKey = "health"

// supervise reports on etcd until the context ends.
func (m *Member) supervise(ctx context.Context) {
	for {
		pause := m.config.Heartbeat.Duration
		if why := m.look(ctx); why.Reason != "" {
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

// look looks at etcd, completes its membership, and renews the Lease. It returns why the member does not serve.
func (m *Member) look(ctx context.Context) lease.State {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	status, err := m.etcd.Status(ctx, m.localURL())
	if err != nil {
		return lease.State{Reason: lease.ReasonStarting, Message: "etcd does not answer"}
	}
	id := status.Header.MemberId
	if status.IsLearner {
		return m.learn(ctx, id)
	}
	if err := m.quorate(ctx); err != nil {
		return lease.State{Reason: lease.ReasonUnhealthy, Message: "no majority of the members answers"}
	}
	list, err := m.etcd.MemberList(ctx)
	if err != nil {
		return lease.State{Reason: lease.ReasonUnhealthy, Message: "etcd does not list its members"}
	}
	now := identity{MemberID: hex(id), ClusterID: hex(status.Header.ClusterId)}
	for _, member := range list.Members {
		if member.ID != id {
			now.Endpoints = append(now.Endpoints, member.ClientURLs...)
			continue
		}
		// The scheme changes when the certificates for peers come.
		if !slices.Equal(member.PeerURLs, []string{m.peerURL}) {
			if _, err := m.etcd.MemberUpdate(ctx, id, []string{m.peerURL}); err != nil {
				return lease.State{Reason: lease.ReasonUnhealthy, Message: "etcd does not take the URL for peers: " + err.Error()}
			}
		}
	}
	slices.Sort(now.Endpoints)
	if err := m.renew(ctx, now, status.Leader == id); err != nil {
		m.log.Warn("The Lease is not renewed", "error", err.Error())
	}
	return lease.State{}
}

// learn asks the others to make the member a voter.
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

// quorate returns an error unless a majority answers this member.
func (m *Member) quorate(ctx context.Context) error {
	_, err := m.etcd.Get(ctx, healthKey, clientv3.WithKeysOnly())
	return err
}

// renew writes what etcd is to the Lease and to the volume, and begins what the operator asks for.
func (m *Member) renew(ctx context.Context, now identity, leads bool) error {
	m.mu.Lock()
	finished := m.defragmented
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
	now.Recorded = m.isRecorded()
	said, err := m.leases.write(ctx, r)
	if err == nil {
		now.Recorded = true
		m.written(finished)
		m.defragment(ctx, said)
	}
	if before, readErr := m.data.identity(); readErr != nil || !before.equal(now) {
		err = errors.Join(err, m.data.remember(now))
	}
	m.mu.Lock()
	m.recorded = now.Recorded
	m.mu.Unlock()
	return err
}

// written notes that the Lease says that the member serves.
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

// defragment begins a defragmentation that the operator asks for, and that was not carried out. Etcd answers little meanwhile, so the Lease
// is renewed beside it.
func (m *Member) defragment(ctx context.Context, said lease.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if said.Defragment == "" || said.Defragment == said.Defragmented || m.defragmenting == said.Defragment {
		return
	}
	m.defragmenting = said.Defragment
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.config.DefragmentTimeout.Duration)
		defer cancel()
		m.log.Info("Defragmenting the database", "asked", said.Defragment)
		done := &result{value: said.Defragment}
		if _, err := m.etcd.Defragment(ctx, m.localURL()); err != nil {
			done.err = err.Error()
		}
		m.log.Info("Defragmented the database", "asked", said.Defragment, "error", done.err)
		m.mu.Lock()
		m.defragmented = done
		m.mu.Unlock()
	}()
}

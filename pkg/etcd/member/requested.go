package member

import (
	"context"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// takeRequested takes the snapshot that the operator requests, if this member leads and has not taken it yet. It is tried again
// with each renewal of the Lease until it is stored.
func (m *Member) takeRequested(ctx context.Context, own lease.Member, leads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := own.SnapshotTaken
	if m.snapshotted != nil && m.snapshotted.err == "" {
		taken = m.snapshotted.value
	}
	if own.Snapshot == "" || own.Snapshot == taken || !leads || m.taker == nil || m.snapshotting == own.Snapshot {
		return
	}
	m.snapshotting = own.Snapshot
	taker, request := m.taker, own.Snapshot
	ctx = context.WithoutCancel(ctx) // the snapshot has a time limit of its own
	go func() {
		m.log.Info("Taking a requested snapshot", "requested", request)
		done := &result{value: request}
		if _, err := taker.Full(ctx, strings.HasPrefix(request, lease.SnapshotFinal)); err != nil {
			done.err = err.Error()
		}
		m.log.Info("Took a requested snapshot", "requested", request, "error", done.err)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.snapshotted, m.snapshotting = done, ""
	}()
}

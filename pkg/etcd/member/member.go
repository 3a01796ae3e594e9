package member

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/etcd/backup"
	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// retry is the delay between two attempts.
const retry = time.Second

// startRetry is the delay between two health checks while etcd is starting.
const startRetry = 200 * time.Millisecond

// Member runs one member.
type Member struct {
	config             *config.Member
	name               string
	clientURL, peerURL string
	data               data
	leases             *leases
	log                *slog.Logger
	now                func() time.Time

	mu sync.Mutex
	// etcd is a client of the member's own etcd, nil before it is started.
	etcd *clientv3.Client
	// recorded is set once the Lease has recorded the creation of the cluster.
	recorded bool
	// state is the reported reason why the member does not serve. unwritten is set if the Lease might contain another one.
	state     lease.State
	unwritten bool
	// defragmenting is the annotation value that is being processed, and defragmented the result that is not reported yet.
	defragmenting string
	defragmented  *result
	// snapshotting is the requested snapshot that is being taken, and snapshotted the last result.
	snapshotting string
	snapshotted  *result
	// cluster is the ID of the cluster, empty before it is known. followed is the epoch of the backups that it continues or replaces.
	cluster  string
	followed int
	// taker takes the backups; nil without backups, or before etcd is started.
	taker    *backup.Taker
	registry *prometheus.Registry
}

// result is the outcome of a requested operation.
type result struct{ value, err string }

// New returns a member. access is the connection to the API server that stores its Lease.
func New(settings *config.Member, name string, access *rest.Config, log *slog.Logger, now func() time.Time) (*Member, error) {
	leases, err := newLeases(access, settings.Namespace, settings.Etcd, name)
	if err != nil {
		return nil, err
	}
	return &Member{
		config: settings, name: name, data: data{settings.Directory}, leases: leases, log: log, now: now, unwritten: true,
		registry:  prometheus.NewRegistry(),
		clientURL: strings.ReplaceAll(settings.ClientURL, config.Placeholder, name),
		peerURL:   strings.ReplaceAll(settings.PeerURL, config.Placeholder, name),
	}, nil
}

// serverName is the host name in the certificate of all members.
func (m *Member) serverName() string {
	if m.config.ClientTLS == nil {
		return ""
	}
	return m.config.ClientTLS.ServerName
}

// first is the name of the member that creates the cluster.
func (m *Member) first() string { return m.config.Etcd + "-0" }

// Run runs the member until the context or etcd ends. The error describes why etcd terminated or cannot be started.
func (m *Member) Run(ctx context.Context) error {
	how, err := m.prepare(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if err := m.writeSettings(how); err != nil {
		return err
	}
	client, err := connect(m.config.ClientTLS, m.serverName(), m.localURL())
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	m.log.Info("Starting etcd", "state", how.state, "cluster", how.initialCluster)
	p, err := startProcess(m.config.Program, m.data.configFile())
	if err != nil {
		return err
	}
	taker, err := m.newTaker(client)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.etcd, m.taker = client, taker
	m.mu.Unlock()
	return m.watch(ctx, p, taker)
}

// watch supervises etcd until it has ended. When the context ends, the last changes are stored before etcd is stopped.
func (m *Member) watch(ctx context.Context, p *process, taker *backup.Taker) error {
	watching, stop := context.WithCancel(ctx)
	etcd, stopEtcd := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEtcd()
	var supervision, backups sync.WaitGroup
	supervision.Go(func() { m.supervise(watching) })
	if taker != nil {
		backups.Go(func() {
			taker.Run(watching, func() (context.Context, context.CancelFunc) { return context.WithTimeout(etcd, drainTimeout) })
		})
	}
	defer context.AfterFunc(ctx, func() {
		backups.Wait()
		stopEtcd()
	})()
	err := p.wait(etcd)
	stopEtcd()
	stop()
	supervision.Wait()
	backups.Wait()
	if err == nil && m.config.Backup != nil {
		err = m.data.write(m.data.cleanFile(), nil)
	}
	return err
}

// prepare returns how etcd starts. It blocks until this is known or the context ends.
func (m *Member) prepare(ctx context.Context) (start, error) {
	exist, err := m.data.exist()
	if err != nil {
		return start{}, err
	}
	known, err := m.data.identity()
	if err != nil {
		return start{}, err
	}
	m.setFollows(known.Follows)
	current := exist && !m.stale(ctx, known)
	if current && m.config.Backup != nil {
		if current, err = m.usable(ctx); err != nil || ctx.Err() != nil {
			return start{}, err
		}
		exist = current
	}
	if current {
		// Members with data start without the API server, because it might be the one that they serve.
		m.mu.Lock()
		m.recorded = known.Recorded
		m.mu.Unlock()
		return m.resume(), nil
	}
	if exist {
		m.log.Info("Removing the data, because the other members have removed this one", "id", known.MemberID, "cluster", known.ClusterID)
	}
	if err := m.data.remove(); err != nil {
		return start{}, err
	}
	for {
		how, why := m.begin(ctx)
		if why.Reason == "" {
			return how, nil
		}
		m.explain(ctx, why)
		if !sleep(ctx, retry) {
			return start{}, nil
		}
	}
}

// usable validates the data of the member. It blocks while they are damaged and cannot be replaced. It is false once they are set aside.
func (m *Member) usable(ctx context.Context) (bool, error) {
	full := !m.data.closed()
	for {
		_, err := m.data.validate(full)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, errDamaged) {
			return false, err // the member is started again
		}
		// A second look, because a single one may be an error of the disk.
		if revision, err := m.data.validate(full); errors.Is(err, errDamaged) {
			why := m.keepOrReplace(ctx, err, revision)
			if why.Reason == "" {
				return false, nil
			}
			m.explain(ctx, why)
		}
		if !sleep(ctx, retry) {
			return false, nil
		}
	}
}

// begin returns how etcd starts without data, or why it does not start.
func (m *Member) begin(ctx context.Context) (start, lease.State) {
	members, err := m.leases.list(ctx)
	if err != nil {
		return start{}, lease.State{Reason: lease.ReasonJoining, Message: err.Error()}
	}
	decision := decide(m.name, m.first(), members)
	switch decision.action {
	case actionForm:
		if m.config.Backup != nil {
			return m.recover(ctx, decision, members)
		}
		return m.form(), lease.State{}
	case actionRestore:
		if m.config.Backup != nil {
			return m.recover(ctx, decision, members)
		}
	case actionJoin:
		how, err := m.join(ctx, decision.clusters, decision.endpoints)
		if err != nil {
			return start{}, decision.notJoined(err.Error())
		}
		return how, lease.State{}
	}
	return start{}, decision.why
}

// explain reports why the member does not serve, unless its Lease already does.
func (m *Member) explain(ctx context.Context, why lease.State) {
	m.mu.Lock()
	same := m.state == why && !m.unwritten
	if m.state != why {
		m.log.Info("The member does not serve", "reason", why.Reason, "message", why.Message)
	}
	m.state = why
	m.mu.Unlock()
	if same {
		return
	}
	_, err := m.leases.write(ctx, report{annotations: map[string]string{
		lease.AnnotationState: why.String(), lease.AnnotationClientURL: m.clientURL,
	}})
	m.mu.Lock()
	m.unwritten = err != nil
	m.mu.Unlock()
}

// sleep returns false if the context ends first.
func sleep(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/trellis-k8s/trellis/pkg/etcd/config"
)

const (
	// requestTimeout is how long an answer of etcd may take.
	requestTimeout = 5 * time.Second
	// staleTimeout is how long a member that has data asks the others whether it still belongs to them. They may be about to start, too.
	staleTimeout = 2 * time.Second
)

// connect returns a client of etcd. Its caller closes it.
func connect(files *config.ClientTLS, serverName string, endpoints ...string) (*clientv3.Client, error) {
	settings := clientv3.Config{Endpoints: endpoints, DialTimeout: requestTimeout, Logger: zap.NewNop()}
	if files != nil {
		certificate, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		authority, err := os.ReadFile(files.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the authority of etcd: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("the file %s with the authority of etcd has no certificate", files.CAFile)
		}
		settings.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: pool, ServerName: serverName, MinVersion: tls.VersionTLS12}
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return nil, fmt.Errorf("connect with etcd: %w", err)
	}
	return client, nil
}

// others calls a function with a client of other members. Their certificate is that of all members.
func (m *Member) others(ctx context.Context, timeout time.Duration, endpoints []string, do func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := connect(m.config.ClientTLS, m.serverName(), endpoints...)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return do(ctx, client)
}

// join adds the member to the cluster, as a learner, after it has removed its earlier lives. The error says why that is not possible now.
func (m *Member) join(ctx context.Context, clusters, endpoints []string) (start, error) {
	var how start
	err := m.others(ctx, 2*requestTimeout, endpoints, func(ctx context.Context, client *clientv3.Client) error {
		// A majority answers this. It goes on without this member, so that removing what it was loses nothing.
		list, err := client.MemberList(ctx)
		if err != nil {
			return fmt.Errorf("no majority of its members answers: %w", err)
		}
		if id := hex(list.Header.ClusterId); !slices.Contains(clusters, id) {
			return fmt.Errorf("the members that answer form the cluster %s", id)
		}
		for _, id := range outdated(peersOf(list.Members), m.name, m.peerURL) {
			m.log.Info("Removing the member that this one was before it lost its data", "id", hex(id))
			if _, err := client.MemberRemove(ctx, id); err != nil {
				return fmt.Errorf("its members do not remove %s: %w", hex(id), err)
			}
		}
		added, err := client.MemberAddAsLearner(ctx, []string{m.peerURL})
		if err != nil {
			return fmt.Errorf("its members do not add this one: %w", err)
		}
		how = start{state: "existing", token: "etcd-cluster"}
		how.initialCluster, err = initialCluster(peersOf(added.Members), added.Member.ID, m.name)
		return err
	})
	return how, err
}

// stale reports whether a majority of the other members says that this one does not belong to them any more: then its data are of no use.
func (m *Member) stale(ctx context.Context, known identity) bool {
	if known.MemberID == "" || len(known.Endpoints) == 0 {
		return false
	}
	removed := false
	err := m.others(ctx, staleTimeout, known.Endpoints, func(ctx context.Context, client *clientv3.Client) error {
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		removed = hex(list.Header.ClusterId) == known.ClusterID && !slices.ContainsFunc(peersOf(list.Members), func(p peer) bool {
			return hex(p.id) == known.MemberID
		})
		return nil
	})
	return err == nil && removed
}

// promote makes the member a voter once it has what the leader has.
func (m *Member) promote(ctx context.Context, id uint64, endpoints []string) error {
	if len(endpoints) == 0 {
		return errors.New("it knows no other member")
	}
	return m.others(ctx, requestTimeout, endpoints, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberPromote(ctx, id)
		return err
	})
}

// listed is a member as etcd lists it.
type listed interface {
	GetID() uint64
	GetName() string
	GetPeerURLs() []string
}

func peersOf[M listed](members []M) []peer {
	peers := make([]peer, 0, len(members))
	for _, member := range members {
		peers = append(peers, peer{id: member.GetID(), name: member.GetName(), peerURLs: member.GetPeerURLs()})
	}
	return peers
}

// hex writes an identifier as etcd prints it.
func hex(id uint64) string { return strconv.FormatUint(id, 16) }

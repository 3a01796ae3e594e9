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
	// requestTimeout is the timeout of a request to etcd.
	requestTimeout = 5 * time.Second
	// staleTimeout limits how long a member with data asks the other members whether it still belongs to the cluster. They
	// might be starting, too.
	staleTimeout = 2 * time.Second
)

// connect returns an etcd client. The caller must close it.
func connect(files *config.ClientTLS, serverName string, endpoints ...string) (*clientv3.Client, error) {
	settings := clientv3.Config{Endpoints: endpoints, DialTimeout: requestTimeout, Logger: zap.NewNop()}
	if files != nil {
		certificate, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		authority, err := os.ReadFile(files.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA of etcd: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("the CA file %s of etcd contains no certificate", files.CAFile)
		}
		settings.TLS = &tls.Config{
			Certificates: []tls.Certificate{certificate}, RootCAs: pool, ServerName: serverName, MinVersion: tls.VersionTLS12,
		}
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// others calls do with a client of other members. All members use the same server certificate.
func (m *Member) others(ctx context.Context, timeout time.Duration, endpoints []string,
	do func(context.Context, *clientv3.Client) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := connect(m.config.ClientTLS, m.serverName(), endpoints...)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return do(ctx, client)
}

// join adds the member to the cluster as a learner, after it has removed its previous instances. The error describes
// why this is not possible now.
func (m *Member) join(ctx context.Context, clusters, endpoints []string) (start, error) {
	var how start
	err := m.others(ctx, 2*requestTimeout, endpoints, func(ctx context.Context, client *clientv3.Client) error {
		// This request needs a quorum. The quorum does not include this member, so that removing its previous instances loses
		// nothing.
		list, err := client.MemberList(ctx)
		if err != nil {
			return fmt.Errorf("the cluster has no quorum: %w", err)
		}
		if id := hex(list.Header.ClusterId); !slices.Contains(clusters, id) {
			return fmt.Errorf("the responding members belong to the cluster %s", id)
		}
		for _, id := range outdated(peersOf(list.Members), m.name, m.peerURL) {
			m.log.Info("Removing the previous instance of this member, which lost its data", "id", hex(id))
			if _, err := client.MemberRemove(ctx, id); err != nil {
				return fmt.Errorf("the cluster does not remove member %s: %w", hex(id), err)
			}
		}
		added, err := client.MemberAddAsLearner(ctx, []string{m.peerURL})
		if err != nil {
			return fmt.Errorf("the cluster does not add this member: %w", err)
		}
		how = start{state: "existing", token: "etcd-cluster"}
		how.initialCluster, err = initialCluster(peersOf(added.Members), added.Member.ID, m.name)
		return err
	})
	return how, err
}

// stale reports whether a majority of the other members has removed this one from the cluster. Its data are then
// useless.
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

// promote makes the member a voter if it has caught up with the leader.
func (m *Member) promote(ctx context.Context, id uint64, endpoints []string) error {
	if len(endpoints) == 0 {
		return errors.New("no other member is known")
	}
	return m.others(ctx, requestTimeout, endpoints, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberPromote(ctx, id)
		return err
	})
}

// listed is a member in a response of etcd.
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

// hex formats an ID as etcd does.
func hex(id uint64) string { return strconv.FormatUint(id, 16) }

package etcd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/config"
)

// Keys of the ConfigMap, and mount paths in the Pods.
const (
	keyEtcd         = "etcd.conf.yaml"
	keyMember       = "member.yaml"
	configDirectory = "/var/etcd/config"
	dataDirectory   = "/var/etcd/data"
)

// Mount paths of certificates in the Pods.
const (
	directoryCA         = "/var/etcd/ssl/ca"
	directoryServer     = "/var/etcd/ssl/server"
	directoryClient     = "/var/etcd/ssl/client"
	directoryPeerCA     = "/var/etcd/ssl/peer/ca"
	directoryPeerServer = "/var/etcd/ssl/peer/server"
)

// Defaults of etcd.
const (
	defaultQuota         = 8 << 30
	defaultSnapshotCount = 10000
	defaultCompaction    = "30m"
	defaultAuthorityKey  = "ca.crt"
)

// configMap returns the configuration of members and its checksum. It does not depend on the member or on the number of
// members, so that scaling up does not replace existing members.
func (in Inputs) configMap() (*corev1.ConfigMap, string, error) {
	settings, err := yaml.Marshal(in.etcdSettings())
	if err != nil {
		return nil, "", fmt.Errorf("encode the configuration of etcd: %w", err)
	}
	member, err := yaml.Marshal(in.memberSettings())
	if err != nil {
		return nil, "", fmt.Errorf("encode the configuration of members: %w", err)
	}
	sum := sha256.New()
	sum.Write(settings)
	sum.Write(member)
	return &corev1.ConfigMap{
		ObjectMeta: in.meta(componentConfigMap, configMapName(in.Etcd.Name)),
		Data:       map[string]string{keyEtcd: string(settings), keyMember: string(member)},
	}, hex.EncodeToString(sum.Sum(nil)), nil
}

// etcdSettings returns the configuration file of etcd. Members add their name, their addresses and their initial
// cluster.
func (in Inputs) etcdSettings() map[string]any {
	spec := in.Etcd.Spec
	shared := ptr.Deref(spec.SharedConfig, druidv1alpha1.SharedConfig{})
	var quota int64 = defaultQuota
	if spec.ETCD.Quota != nil {
		quota = spec.ETCD.Quota.Value()
	}
	settings := map[string]any{
		"metrics":                   string(ptr.Deref(spec.ETCD.Metrics, druidv1alpha1.Basic)),
		"snapshot-count":            ptr.Deref(spec.ETCD.SnapshotCount, defaultSnapshotCount),
		"enable-grpc-gateway":       true,
		"quota-backend-bytes":       quota,
		"auto-compaction-mode":      string(ptr.Deref(shared.AutoCompactionMode, druidv1alpha1.Periodic)),
		"auto-compaction-retention": ptr.Deref(shared.AutoCompactionRetention, defaultCompaction),
		"strict-reconfig-check":     true,
	}
	if tls := spec.ETCD.ClientURLTLS; tls != nil {
		settings["client-transport-security"] = security(directoryCA, directoryServer, tls)
	}
	if tls := spec.ETCD.PeerURLTLS; tls != nil {
		peers := security(directoryPeerCA, directoryPeerServer, tls)
		// The CA signs certificates only for peers. DNS names of their addresses might not resolve yet when they connect.
		peers["skip-client-san-verification"] = true
		settings["peer-transport-security"] = peers
	}
	return settings
}

func security(authority, server string, tls *druidv1alpha1.TLSConfig) map[string]any {
	return map[string]any{
		"cert-file": path.Join(server, corev1.TLSCertKey), "key-file": path.Join(server, corev1.TLSPrivateKeyKey),
		"client-cert-auth": true, "trusted-ca-file": path.Join(authority, authorityKey(tls)), "auto-tls": false,
	}
}

func authorityKey(tls *druidv1alpha1.TLSConfig) string {
	return cmp.Or(ptr.Deref(tls.TLSCASecretRef.DataKey, ""), defaultAuthorityKey)
}

// memberSettings returns the configuration file of etcd-member.
func (in Inputs) memberSettings() config.Member {
	spec := in.Etcd.Spec
	host := fmt.Sprintf("%s.%s.%s.svc", config.Placeholder, PeerServiceName(in.Etcd.Name), in.Etcd.Namespace)
	member := config.Member{
		TypeMeta:  metav1.TypeMeta{APIVersion: config.APIVersion, Kind: config.KindMember},
		Namespace: in.Etcd.Namespace, Etcd: in.Etcd.Name,
		EtcdConfigFile: path.Join(configDirectory, keyEtcd), Directory: dataDirectory,
		ClientURL:  fmt.Sprintf("%s://%s:%d", schemeOf(spec.ETCD.ClientURLTLS), host, in.clientPort()),
		PeerURL:    fmt.Sprintf("%s://%s:%d", schemeOf(spec.ETCD.PeerURLTLS), host, in.peerPort()),
		StatusPort: int(in.statusPort()),
		Heartbeat:  ptr.Deref(spec.ETCD.HeartbeatDuration, metav1.Duration{Duration: 10 * time.Second}),
		// The default of etcd-druid.
		DefragmentTimeout: ptr.Deref(spec.ETCD.ETCDDefragTimeout, metav1.Duration{Duration: 15 * time.Minute}),
	}
	member.Backup = in.memberBackup()
	if tls := spec.ETCD.ClientURLTLS; tls != nil {
		member.ClientTLS = &config.ClientTLS{
			CAFile:         path.Join(directoryCA, authorityKey(tls)),
			ServerCertFile: path.Join(directoryServer, corev1.TLSCertKey), ServerKeyFile: path.Join(directoryServer, corev1.TLSPrivateKeyKey),
			CertFile: path.Join(directoryClient, corev1.TLSCertKey), KeyFile: path.Join(directoryClient, corev1.TLSPrivateKeyKey),
			ServerName: in.Etcd.Name + "-local",
		}
	}
	return member
}

func schemeOf(tls *druidv1alpha1.TLSConfig) string {
	if tls != nil {
		return "https"
	}
	return "http"
}

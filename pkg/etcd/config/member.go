package config

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/configfile"
)

// KindMember is the kind of a member's configuration file.
const KindMember = "EtcdMemberConfiguration"

// Placeholder stands for the name of the member in its URLs.
const Placeholder = "{member}"

// Member is the configuration of the program etcd-member, which runs one member. All members of an Etcd have the same
// configuration.
type Member struct {
	metav1.TypeMeta `json:",inline"`

	// Namespace and Etcd are the namespace and name of the Etcd that the member belongs to. Required.
	Namespace string `json:"namespace"`
	Etcd      string `json:"etcd"`
	// Kubeconfig is the path of a kubeconfig. Default: empty, for the cluster in which the process runs.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Program is the path of etcd. Default: /etcd.
	Program string `json:"program,omitempty"`
	// EtcdConfigFile is a configuration file of etcd without the settings that differ between members. Required.
	EtcdConfigFile string `json:"etcdConfigFile"`
	// Directory is the data directory on the volume of the member. Default: /var/etcd/data.
	Directory string `json:"directory,omitempty"`
	// ListenAddress is the address that etcd listens on. Default: 0.0.0.0.
	ListenAddress string `json:"listenAddress,omitempty"`
	// ClientURL and PeerURL are the URLs at which clients and other members reach this member, with Placeholder for its
	// name. Required.
	ClientURL string `json:"clientURL"`
	PeerURL   string `json:"peerURL"`
	// StatusPort serves /readyz and /healthz, with the certificate of ClientTLS if that is set. Default: 9095.
	StatusPort int `json:"statusPort,omitempty"`
	// ClientTLS are the files for connections with clients. Required if ClientURL begins with https.
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`
	// Heartbeat is the interval between renewals of the Lease. Default: 10s.
	Heartbeat metav1.Duration `json:"heartbeat,omitempty"`
	// DefragmentTimeout is the timeout of a defragmentation. Default: 15m.
	DefragmentTimeout metav1.Duration `json:"defragmentTimeout,omitempty"`
	// Backup defines the backups. Default: no backups.
	Backup *Backup `json:"backup,omitempty"`
}

// ClientTLS are the files for connections with clients.
type ClientTLS struct {
	// CAFile contains the CA certificates.
	CAFile string `json:"caFile"`
	// ServerCertFile and ServerKeyFile are the certificate and key of the server.
	ServerCertFile string `json:"serverCertFile"`
	ServerKeyFile  string `json:"serverKeyFile"`
	// CertFile and KeyFile are the client certificate and key of the program.
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// ServerName is the host name in the server certificate with which the program verifies its own etcd.
	ServerName string `json:"serverName"`
}

// LoadMember reads, defaults and validates the file at path. The error lists all violations.
func LoadMember(path string) (*Member, error) {
	return configfile.Format[Member]{Kind: KindMember, SetDefaults: (*Member).setDefaults, Validate: (*Member).validate}.Load(path)
}

func (c *Member) setDefaults() {
	c.Program = cmp.Or(c.Program, "/etcd")
	c.Directory = cmp.Or(c.Directory, "/var/etcd/data")
	c.ListenAddress = cmp.Or(c.ListenAddress, "0.0.0.0")
	c.StatusPort = cmp.Or(c.StatusPort, 9095)
	c.Heartbeat = cmp.Or(c.Heartbeat, metav1.Duration{Duration: 10 * time.Second})
	c.DefragmentTimeout = cmp.Or(c.DefragmentTimeout, metav1.Duration{Duration: 15 * time.Minute})
	if c.Backup != nil {
		c.Backup.setDefaults()
	}
}

func (c *Member) validate() field.ErrorList {
	errs := validateKind(c.TypeMeta, KindMember)
	for name, value := range map[string]string{"namespace": c.Namespace, "etcd": c.Etcd, "etcdConfigFile": c.EtcdConfigFile} {
		if value == "" {
			errs = append(errs, field.Required(field.NewPath(name), "must be set"))
		}
	}
	for name, value := range map[string]string{"clientURL": c.ClientURL, "peerURL": c.PeerURL} {
		if _, _, err := SplitURL(strings.ReplaceAll(value, Placeholder, "member")); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(name), value, err.Error()))
		}
	}
	if strings.HasPrefix(c.ClientURL, "https:") != (c.ClientTLS != nil) {
		errs = append(errs, field.Invalid(field.NewPath("clientTLS"), c.ClientTLS != nil,
			"must be set if and only if clientURL begins with https"))
	}
	if c.Heartbeat.Duration < 0 || c.DefragmentTimeout.Duration < 0 {
		errs = append(errs, field.Invalid(field.NewPath("heartbeat"), c.Heartbeat.Duration.String(),
			"heartbeat and defragmentTimeout must be above 0"))
	}
	if c.Backup != nil {
		errs = append(errs, c.Backup.validate(field.NewPath("backup"))...)
	}
	return append(errs, validatePort(field.NewPath("statusPort"), c.StatusPort)...)
}

// SplitURL returns the scheme and the port of a URL.
func SplitURL(text string) (scheme string, port int, err error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(parsed.Port())
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return "", 0, fmt.Errorf("must be a URL with the scheme http or https, a host and a port")
	}
	return parsed.Scheme, port, nil
}

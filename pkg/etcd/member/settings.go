package member

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/etcd/config"
)

// start contains the settings that differ between starts of etcd.
type start struct {
	// state is "new" to create a cluster, and "existing" otherwise.
	state string
	// token distinguishes clusters, and initialCluster lists the members. Both are used only without data.
	token, initialCluster string
}

// resume starts etcd with its existing data.
func (m *Member) resume() start {
	return start{state: "existing", token: "etcd-cluster", initialCluster: m.name + "=" + m.peerURL}
}

// form starts etcd as the only member of a new cluster. The random token gives the cluster a unique ID.
func (m *Member) form() start {
	return start{state: "new", token: "etcd-cluster-" + rand.Text(), initialCluster: m.name + "=" + m.peerURL}
}

// writeSettings writes the configuration file of etcd: the common settings, and those of this member and this start.
func (m *Member) writeSettings(how start) error {
	content, err := os.ReadFile(m.config.EtcdConfigFile)
	if err != nil {
		return fmt.Errorf("read the configuration of etcd: %w", err)
	}
	settings := map[string]any{}
	if err := yaml.Unmarshal(content, &settings); err != nil {
		return fmt.Errorf("read the configuration of etcd in %s: %w", m.config.EtcdConfigFile, err)
	}
	settings["name"] = m.name
	settings["data-dir"] = m.data.etcdDirectory()
	settings["listen-client-urls"] = m.listenURL(m.clientURL)
	settings["listen-peer-urls"] = m.listenURL(m.peerURL)
	settings["advertise-client-urls"] = m.clientURL
	settings["initial-advertise-peer-urls"] = m.peerURL
	settings["initial-cluster"] = how.initialCluster
	settings["initial-cluster-state"] = how.state
	settings["initial-cluster-token"] = how.token
	content, err = yaml.Marshal(settings)
	if err != nil {
		return fmt.Errorf("write the configuration of etcd: %w", err)
	}
	return m.data.write(m.data.configFile(), content)
}

// listenURL is the listen address of etcd for an advertised URL. The URL was validated with the configuration.
func (m *Member) listenURL(url string) string {
	scheme, port, _ := config.SplitURL(url)
	return scheme + "://" + net.JoinHostPort(m.config.ListenAddress, strconv.Itoa(port))
}

// localURL is the URL at which the member reaches its own etcd.
func (m *Member) localURL() string {
	scheme, port, _ := config.SplitURL(m.clientURL)
	host := "127.0.0.1"
	if strings.Contains(m.config.ListenAddress, ":") {
		host = "::1"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
}

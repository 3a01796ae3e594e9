package e2e

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// namespaceOfGateway is the namespace of the gateway that all Shoots of the Seed share.
const namespaceOfGateway = "istio-ingress"

// TestGatewayOfSeed creates Shoots, as many as -landscape.shoots says. All of them are reached from the host at one address by their names.
// One Shoot is attacked with the credentials of another one. Then the gateway is replaced while users write and read.
func TestGatewayOfSeed(t *testing.T) {
	if !*gateway {
		t.Skip("takes minutes: -landscape.gateway")
	}
	c, f := onFleet(t)
	c.reduceRequests()
	must(t, f.Up(c.ctx))
	var further []client.ObjectKey
	for i := range max(*shoots, 2) - 1 {
		further = append(further, client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: fmt.Sprintf("neighbour-%02d", i+1)})
	}
	for pair := range slices.Chunk(further, 2) { // API servers that start together on fewer CPUs need minutes
		times, err := f.CreateShoots(c.ctx, pair...)
		must(t, err)
		t.Logf("%v are ready after %s", pair, times)
	}
	c.shareAnAddress(f, append(further, shootOfFleet))
	t.Run("isolation", func(t *testing.T) { c.in(t).refusedAtNeighbour(f, shootOfFleet, further[0]) })
	t.Run("connect", func(t *testing.T) { c.in(t).refusedByGateway(f, further[0]) })
	t.Run("rollout", func(t *testing.T) { c.in(t).replaceGateway(f) })
	var deleting sync.WaitGroup
	for _, key := range further {
		deleting.Go(func() {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			if err := f.DeleteConfirmed(c.ctx, shoot); err != nil {
				t.Error(err)
			}
		})
	}
	deleting.Wait()
}

// configOf returns the configuration of an administrator of a Shoot.
func (c *cluster) configOf(f *fleet.Fleet, key client.ObjectKey) *rest.Config {
	c.t.Helper()
	kubeconfig, err := f.Kubeconfig(c.ctx, key, time.Hour)
	must(c.t, err)
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	must(c.t, err)
	config.Timeout = requestTimeout
	return config
}

// identity requests the UID of the cluster that a configuration leads to.
func (c *cluster) identity(config *rest.Config) (types.UID, error) {
	in, err := client.New(config, client.Options{})
	if err != nil {
		return "", err
	}
	own := &corev1.Namespace{}
	err = in.Get(c.ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, own)
	return own.UID, err
}

// technicalIDOf returns the namespace of the control plane of a Shoot.
func (c *cluster) technicalIDOf(f *fleet.Fleet, key client.ObjectKey) string {
	c.t.Helper()
	shoot := &corev1beta1.Shoot{}
	must(c.t, f.Get(c.ctx, key, shoot))
	return shoot.Status.TechnicalID
}

// shareAnAddress checks that all Shoots have the same address, that the DNS server of the landscape resolves their names to it, and that another
// cluster responds at each name.
func (c *cluster) shareAnAddress(f *fleet.Fleet, keys []client.ObjectKey) {
	c.t.Helper()
	addresses, clusters := map[string]bool{}, map[types.UID]string{}
	for _, key := range keys {
		host, address, err := f.Address(c.ctx, key)
		must(c.t, err)
		addresses[address] = true
		c.resolves(host, address)
		uid, err := c.identity(c.configOf(f, key))
		must(c.t, err)
		if other, found := clusters[uid]; found {
			c.t.Errorf("the names %s and %s lead to the same cluster", host, other)
		}
		clusters[uid] = host
	}
	if len(addresses) != 1 {
		c.t.Errorf("the Shoots have the addresses %v, want one", addresses)
	}
	c.t.Logf("%d clusters respond at their names and one address: %v", len(clusters), addresses)
}

// refusedAtNeighbour sends requests with the credentials of one Shoot, or with none, to the name of another one.
func (c *cluster) refusedAtNeighbour(f *fleet.Fleet, from, to client.ObjectKey) {
	c.t.Helper()
	own, neighbour := c.configOf(f, from), c.configOf(f, to)
	inside, err := client.New(own, client.Options{})
	must(c.t, err)
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}}
	must(c.t, inside.SubResource("token").Create(c.ctx, account, token))
	asMaster := map[string]string{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
	service := "kube-apiserver." + c.technicalIDOf(f, from) + ".svc.cluster.local"
	for what, change := range map[string]func(*rest.Config){
		"a client certificate of another Shoot": func(config *rest.Config) {
			config.CertData, config.KeyData = own.CertData, own.KeyData
		},
		"a token of another Shoot": func(config *rest.Config) { without(config); config.BearerToken = token.Status.Token },
		"headers of a front proxy": func(config *rest.Config) { without(config); config.Wrap(kit.WithHeaders(asMaster)) },
		"headers of a front proxy and a certificate": func(config *rest.Config) {
			config.CertData, config.KeyData = own.CertData, own.KeyData
			config.Wrap(kit.WithHeaders(asMaster))
		},
		"the name of the neighbour, if the authority is another Shoot's": func(config *rest.Config) { config.CAData = own.CAData },
		"the name of a Service":        func(config *rest.Config) { config.ServerName = service },
		"the name of a missing Shoot":  func(config *rest.Config) { config.ServerName = "missing." + config.ServerName },
		"an address instead of a name": func(config *rest.Config) { config.ServerName = "" },
		"the header of a destination": func(config *rest.Config) {
			without(config)
			config.Wrap(kit.WithHeaders(map[string]string{"X-Gardener-Destination": "outbound|443||" + service}))
		},
	} {
		config := rest.CopyConfig(neighbour)
		change(config)
		uid, err := c.identity(config)
		if err == nil {
			c.t.Errorf("%s: the cluster %s answers", what, uid)
			continue
		}
		c.t.Logf("refused: %s: %v", what, err)
	}
	if _, err := c.identity(neighbour); err != nil {
		c.t.Errorf("an administrator of the neighbour: %v", err)
	}
}

// without removes the credentials.
func without(config *rest.Config) { config.CertData, config.KeyData, config.BearerToken = nil, nil, "" }

// refusedByGateway asks the gateway for connections as the proxies of nodes do, to everything but an API server. At the name of a Shoot it gets one.
func (c *cluster) refusedByGateway(f *fleet.Fleet, key client.ObjectKey) {
	c.t.Helper()
	host, address, err := f.Address(c.ctx, key)
	must(c.t, err)
	namespace := c.technicalIDOf(f, key)
	etcd := &corev1.Service{}
	must(c.t, c.Get(c.ctx, client.ObjectKey{Namespace: namespace, Name: "etcd-main-client"}, etcd))
	for _, target := range []string{
		"etcd-main-client." + namespace + ".svc.cluster.local:2379", etcd.Spec.ClusterIP + ":2379", host + ":2379",
		"kubernetes.default.svc.cluster.local:443", "kube-apiserver." + namespace + ".svc.cluster.local:443",
	} {
		status, err := connectTo(address, target, host)
		if err == nil {
			c.t.Errorf("CONNECT %s: %s", target, status)
		}
		c.t.Logf("refused: CONNECT %s: %v", target, err)
	}
	if _, err := connectTo(address, host+":443", host); err != nil {
		c.t.Errorf("CONNECT %s:443: %v", host, err)
	}
}

// connectTo asks a gateway for a connection to a target, and begins TLS with it.
func connectTo(gateway, target, name string) (status string, err error) {
	connection, err := net.DialTimeout("tcp", net.JoinHostPort(gateway, "8443"), requestTimeout)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	if err := connection.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
		return "", err
	}
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return response.Status, errors.New(response.Status)
	}
	inner := tls.Client(connection, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}) // only that one responds counts
	return response.Status, inner.Handshake()
}

// replaceGateway replaces the Pods of the gateway, while users of the Shoot of Up write and read.
func (c *cluster) replaceGateway(f *fleet.Fleet) {
	c.t.Helper()
	users := c.startUsers(c.configOf(f, shootOfFleet))
	began, gateways := time.Now(), *c
	gateways.namespace = namespaceOfGateway
	old := gateways.podsOfGateway()
	gateways.kubectl("rollout", "restart", "deployment/"+constants.IstioIngressGatewayName)
	c.within(nodesTimeout, "the Pods of the gateway are replaced", func() error {
		current := gateways.podsOfGateway()
		if len(current) != len(old) || slices.ContainsFunc(current, func(name string) bool { return slices.Contains(old, name) }) {
			return fmt.Errorf("its Pods are %v, before %v", current, old)
		}
		return nil
	})
	c.t.Logf("%v were replaced after %s", old, time.Since(began).Round(time.Second))
	for _, user := range users {
		user.stop()
		counted := user.take()
		c.t.Logf("%s: %s", user.name, counted)
		// A connection that is never silent is cut off after a minute: docs/exposure.md.
		if most := len(old); counted.requests < servedRequests || user.name == connectsEachTime && counted.failed > 0 || counted.failed > most {
			c.t.Errorf("%s: %s", user.name, counted)
		}
	}
}

// podsOfGateway returns the names of the Pods of the gateway.
func (c *cluster) podsOfGateway() []string {
	c.t.Helper()
	return strings.Fields(c.kubectl("get", "pods", "--selector=app="+constants.IstioIngressGatewayName, "--output=name"))
}

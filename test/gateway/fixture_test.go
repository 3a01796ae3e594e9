// Package gateway tests the gateway with real API servers behind it: two shoots share one address.
package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	gatewaycomponent "github.com/trellis-k8s/trellis/pkg/component/gateway"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/gateway"
	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/pki"
)

const (
	local       = "127.0.0.1"
	namespace   = "istio-ingress"
	serviceName = "istio-ingressgateway"
	// balanced is the address of the load balancer in the status of the Service.
	balanced = "192.0.2.200"
)

// shoot is a cluster whose API server is behind the gateway.
type shoot struct {
	name, namespace, host string
	cp                    *controlplane.ControlPlane
	authority             *pki.Authority
	// uid identifies the cluster.
	uid types.UID
}

// replica is a Pod of the gateway.
type replica struct {
	tls, connect, health string
	stop                 context.CancelFunc
	ended                chan error
}

// world is a seed with a gateway. The API server of the first shoot is that of the seed, too, so that the test has one control plane less.
type world struct {
	*testing.T
	client   client.Client
	shoots   []*shoot
	replicas []*replica
	config   string

	mu sync.Mutex
	// network has the addresses in the seed: host and port → where it listens.
	network map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("needs control planes, which -short excludes")
	}
	w := &world{T: t, network: map[string]string{}}
	var group sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		s := &shoot{
			name: name, namespace: "shoot--dev--" + name, host: "api." + name + ".dev.internal.example.org", authority: pki.New(t, "ca-"+name),
		}
		w.shoots = append(w.shoots, s)
		files := s.authority.Write(t, nil, "kube-apiserver", s.host, local)
		group.Go(func() {
			var err error
			s.cp, err = controlplane.Start(t.Context(), controlplane.Options{
				APIServerArgs: map[string][]string{"tls-sni-cert-key": {files.Certificate + "," + files.Key + ":" + s.host}},
			})
			if err != nil {
				t.Errorf("start the API server of %s: %v", s.name, err)
			}
		})
	}
	group.Wait()
	for _, s := range w.shoots {
		if s.cp == nil {
			t.FailNow()
		}
		t.Cleanup(func() { kit.Must(t, s.cp.Stop()) })
		own := &corev1.Namespace{}
		kit.Must(t, newClient(t, s.cp.Config()).Get(t.Context(), client.ObjectKey{Name: "kube-system"}, own))
		s.uid = own.UID
	}
	w.seed()
	return w
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, gatewayv1.Install(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	kit.Must(t, err)
	return c
}

// seed defines the kinds, and creates the gateway's objects and those of the shoots.
func (w *world) seed() {
	w.Helper()
	config := w.shoots[0].cp.Config()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(root, "config", "crd", "gatewayapi")}, MaxTime: kit.WaitTimeout})
	kit.Must(w, err)
	w.client = newClient(w.T, config)
	gateways := []exposure.Gateway{{Namespace: namespace, Service: serviceName, Labels: map[string]string{"app": serviceName}}}
	objects, err := gatewaycomponent.Objects(gatewaycomponent.Values{Image: "gateway:v1", Gateways: gateways})
	kit.Must(w, err)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	w.create(objects...)
	service := &corev1.Service{}
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: serviceName}, service))
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: balanced}}
	kit.WriteStatus(w, w.client, service)
	for i, s := range w.shoots {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{"gardener.cloud/role": "shoot"}}})
		w.serve(s, fmt.Sprintf("192.0.2.%d1", i+1), fmt.Sprintf("192.0.2.%d2", i+1))
		routes, err := apiserverexposure.Objects(apiserverexposure.Values{
			Namespace: s.namespace, Mode: exposure.GatewayAPI, Hosts: []string{s.host}, Gateways: gateways,
		})
		kit.Must(w, err)
		w.create(routes...)
	}
	w.config = kit.AccountKubeconfig(w, config, w.client, namespace, serviceName)
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		if object.GetNamespace() == "" && object.GetName() == namespace && object.GetLabels() != nil {
			continue // the namespace exists
		}
		kit.Must(w, w.client.Create(w.Context(), object))
	}
}

// serve creates the Service of an API server, whose Pods have addresses.
func (w *world) serve(s *shoot, addresses ...string) {
	w.Helper()
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: "kube-apiserver", Labels: map[string]string{discoveryv1.LabelServiceName: "kube-apiserver"}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](6443)}},
	}
	server, err := url.Parse(s.cp.Config().Host)
	kit.Must(w, err)
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
		w.network[address+":6443"] = server.Host
	}
	w.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}}, slice)
}

// dial connects to an address in the seed.
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	listening, found := w.network[address]
	w.mu.Unlock()
	if !found {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, listening)
}

// fail makes an address refuse connections.
func (w *world) fail(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.network, address)
}

// start runs a replica of the gateway with the rights of the component.
func (w *world) start(r *replica) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.ended = cancel, make(chan error, 1)
	go func() {
		r.ended <- gateway.Run(ctx, gateway.Options{
			Gateway: types.NamespacedName{Namespace: namespace, Name: apiserverexposure.GatewayName}, Service: serviceName, Kubeconfig: w.config,
			TLSAddress: r.tls, ConnectAddress: r.connect, HealthAddress: r.health, MetricsAddress: "0", ListenerPort: 443,
			Limits:        forward.Limits{Connections: 1000, Opening: 250, PerDestination: 500},
			ShutdownDelay: 2 * time.Second, DrainTimeout: 30 * time.Second, Quiet: 2 * time.Second, LogLevel: "error",
			Registry: prometheus.NewRegistry(), Dial: w.dial,
		})
	}()
}

// startAll runs replicas.
func (w *world) startAll(count int) {
	w.Helper()
	address := func() string { return net.JoinHostPort(local, fmt.Sprint(kit.FreePort(w))) }
	for range count {
		r := &replica{tls: address(), connect: address(), health: address()}
		w.start(r)
		w.replicas = append(w.replicas, r)
		w.Cleanup(func() { _ = w.end(r) })
	}
	for _, r := range w.replicas {
		kit.Eventually(w, "the gateway is ready", r.ready)
	}
}

// end stops a replica, and returns its error.
func (w *world) end(r *replica) error {
	r.stop()
	err := <-r.ended
	r.ended <- nil
	return err
}

// ready returns why a replica is not ready.
func (r *replica) ready() string {
	response, err := http.Get("http://" + r.health + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return string(text)
	}
	return ""
}

// balance returns a dialer that connects to a replica that is ready, as the load balancer does, whatever the address is.
func (w *world) balance() func(context.Context, string, string) (net.Conn, error) {
	var mu sync.Mutex
	next := 0
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		mu.Lock()
		next++
		first := next
		mu.Unlock()
		for i := range w.replicas {
			if r := w.replicas[(first+i)%len(w.replicas)]; r.ready() == "" {
				return (&net.Dialer{}).DialContext(ctx, network, r.tls)
			}
		}
		return nil, fmt.Errorf("no replica of the gateway is ready")
	}
}

// access returns a connection to the host of a shoot, with credentials of another one.
func (w *world) access(to, credentials *shoot) *rest.Config {
	config := rest.AnonymousClientConfig(credentials.cp.Config())
	config.Host, config.Dial, config.Timeout = "https://"+to.host, w.balance(), kit.WaitTimeout
	config.TLSClientConfig = rest.TLSClientConfig{CAData: to.authority.PEM}
	own := credentials.cp.Config().TLSClientConfig
	config.CertData, config.KeyData = own.CertData, own.KeyData
	return config
}

package apiserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

// relay forwards connections to an address until it is closed. It can be reopened.
type relay struct {
	target string

	mutex       sync.Mutex
	address     string
	listener    net.Listener
	connections []net.Conn
}

func (r *relay) open(t *testing.T) {
	t.Helper()
	address := r.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	kit.Must(t, err)
	r.listener, r.address = listener, listener.Addr().String()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			backend, err := net.Dial("tcp", r.target)
			if err != nil {
				_ = connection.Close()
				continue
			}
			r.mutex.Lock()
			r.connections = append(r.connections, connection, backend)
			r.mutex.Unlock()
			go r.copy(connection, backend)
			go r.copy(backend, connection)
		}
	}()
}

func (r *relay) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from) // ends when one of the connections is closed
	_, _ = to.Close(), from.Close()
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, connection := range r.connections {
		_ = connection.Close()
	}
	r.connections = nil
}

// TestEtcdDown disconnects only the API server from etcd. Reads and writes fail during the outage, and none returns a wrong
// result.
func TestEtcdDown(t *testing.T) {
	const namespace = "garden-outage"
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	etcd := &relay{}
	t.Cleanup(func() { etcd.close() })
	g := startGardenWith(t, garden.Options{EtcdServer: func(server *url.URL) string {
		etcd.target = server.Host
		etcd.open(t)
		return "http://" + etcd.address
	}})
	c := newClientFor(t, g)
	stored := newShoot(t, c, namespace, "stored")

	etcd.close()
	calls := map[string]func(client.Client) error{
		"create": func(c client.Client) error {
			return c.Create(t.Context(), exampleOf(t, "Shoot", namespace, "refused", &gardencorev1beta1.Shoot{}))
		},
		"update": func(c client.Client) error { return c.Update(t.Context(), stored.DeepCopy()) },
		"delete": func(c client.Client) error { return c.Delete(t.Context(), stored.DeepCopy()) },
		"get": func(c client.Client) error {
			return c.Get(t.Context(), client.ObjectKeyFromObject(stored), &gardencorev1beta1.Shoot{})
		},
		"get of what does not exist": func(c client.Client) error {
			return c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "missing"}, &gardencorev1beta1.Shoot{})
		},
		"list": func(c client.Client) error {
			return c.List(t.Context(), &gardencorev1beta1.ShootList{}, client.InNamespace(namespace))
		},
	}
	t.Run("without etcd", func(t *testing.T) {
		for name, call := range calls {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				err := call(c)
				var status apierrors.APIStatus // absent if the aggregator ends the connection of a request that takes too long
				if err == nil || errors.As(err, &status) && status.Status().Code < 500 {
					t.Errorf("%v, want a status of 500 or more, or a broken connection", err)
				}
			})
		}
	})

	etcd.open(t)
	shoots := &gardencorev1beta1.ShootList{}
	kit.EventuallyTrue(t, "the API server responds again", func() bool { return c.List(t.Context(), shoots, client.InNamespace(namespace)) == nil })
	if len(shoots.Items) != 1 || shoots.Items[0].UID != stored.UID || shoots.Items[0].ResourceVersion != stored.ResourceVersion {
		t.Errorf("found %d Shoots after the outage, want the unchanged one from before", len(shoots.Items))
	}
}

// TestWatchResumes kills the API server directly after writes, while an informer watches it. The informer misses neither
// these writes nor later ones.
func TestWatchResumes(t *testing.T) {
	const namespace = "garden-resumed"
	g := startGarden(t)
	c := newClientFor(t, g)
	ensureNamespace(t, c, namespace)
	watching, err := dynamic.NewForConfig(g.Config())
	kit.Must(t, err)
	informers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(watching, 0, namespace, nil)
	informer := informers.ForResource(gardencorev1beta1.SchemeGroupVersion.WithResource("internalsecrets")).Informer()
	informers.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer has not synchronized")
	}
	secret := func(index int) *gardencorev1beta1.InternalSecret {
		return &gardencorev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("secret-%02d", index)}}
	}
	for index := range 20 {
		kit.Must(t, c.Create(t.Context(), secret(index)))
	}
	kit.Must(t, g.KillAPIServer())
	kit.Must(t, g.StartAPIServer(t.Context()))
	for index := range 10 {
		kit.Must(t, c.Delete(t.Context(), secret(index)))
		kit.Must(t, c.Create(t.Context(), secret(20+index)))
	}
	var want []string
	for index := 10; index < 30; index++ {
		want = append(want, namespace+"/"+secret(index).Name)
	}
	kit.Eventually(t, "the informer has the stored objects", func() string {
		if got := slices.Sorted(slices.Values(informer.GetStore().ListKeys())); !slices.Equal(got, want) {
			return fmt.Sprintf("it has %v, want %v", got, want)
		}
		return ""
	})
}

// TestGracefulShutdown stops the API server while it handles a request. It completes the request, and then ends without an
// error.
func TestGracefulShutdown(t *testing.T) {
	const namespace = "garden-shutdown"
	g := startGarden(t)
	c := newClientFor(t, g)
	ensureNamespace(t, c, namespace)
	entered, release := make(chan struct{}, 100), make(chan struct{})
	kit.Must(t, c.Create(t.Context(), labelling(t, namespace, func() {
		entered <- struct{}{}
		<-release
	})))
	created := make(chan error, 1)
	go func() {
		for i := 0; ; i++ { // until the API server calls the webhook
			shoot := exampleOf(t, "Shoot", namespace, fmt.Sprintf("shoot-%d", i), &gardencorev1beta1.Shoot{})
			if err := c.Create(t.Context(), shoot); err != nil || shoot.Labels["webhook"] != "" {
				created <- err
				return
			}
		}
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- g.StopAPIServer(time.Minute) }()
	kit.EventuallyTrue(t, "the API server is no longer ready", func() bool { return !g.Ready(t.Context()) })
	close(release)
	if err := <-created; err != nil {
		t.Errorf("the request in progress failed: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("the API server ended with an error: %v", err)
	}
}

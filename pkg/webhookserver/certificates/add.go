package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// controllerName names the controller in logs and metrics.
const controllerName = "webhook-certificates"

// SelfManaged serves the certificate that a Keeper issues. The Keeper runs in the leader. Every replica serves.
type SelfManaged struct {
	current atomic.Pointer[tls.Certificate]
	metrics *Metrics
	log     logr.Logger
	clock   clock.PassiveClock

	mu       sync.Mutex
	bundle   []byte
	onBundle []func()
}

// Bundle returns the CA bundle that API servers must trust, in PEM. It is nil if there is no certificate yet.
func (s *SelfManaged) Bundle() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bundle
}

// OnBundle registers a function that is called when the bundle changes. It must not block.
func (s *SelfManaged) OnBundle(changed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onBundle = append(s.onBundle, changed)
}

// takeBundle stores the CA bundle of the Secret and calls the registered functions if it changed.
func (s *SelfManaged) takeBundle(bundle []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Equal(s.bundle, bundle) {
		return
	}
	s.bundle = bundle
	for _, changed := range s.onBundle {
		changed()
	}
}

// Get returns the certificate. It returns an error while there is none.
func (s *SelfManaged) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := s.current.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("the webhooks do not have a certificate yet")
}

// take starts to serve the certificate of a Secret.
func (s *SelfManaged) take(secret *corev1.Secret) {
	certificate, err := tls.X509KeyPair(secret.Data[certificateFile], secret.Data[keyFile])
	if err != nil {
		s.log.Error(nil,
			"The Secret of the webhooks does not contain a certificate that matches its key; continuing to serve the previous certificate",
			"secret", client.ObjectKeyFromObject(secret).String())
		return
	}
	s.takeBundle(parse(secret.Data).bundle())
	if before := s.current.Swap(&certificate); before == nil || !slices.Equal(before.Certificate[0], certificate.Certificate[0]) {
		s.metrics.serve(&certificate, s.log, s.clock)
	}
}

// AddSelfManaged adds a Keeper to a manager, and returns the server of its certificate. It watches the Secret of the
// certificates in the source cluster and the metadata of the webhook configurations in the target cluster.
func AddSelfManaged(
	ctx context.Context, mgr manager.Manager, target *rest.Config, options Options, metrics *Metrics, log logr.Logger,
) (*SelfManaged, error) {
	served := &SelfManaged{metrics: metrics, log: log, clock: clock.RealClock{}}
	writes, err := newClients(mgr, target)
	if err != nil {
		return nil, err
	}
	secrets, configurations, err := newCaches(mgr, target, options)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mgr.Add(watches.InEveryReplica(secrets)), mgr.Add(configurations)); err != nil {
		return nil, err
	}
	informer, err := secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch Secret %s: %w", options.Secret, err)
	}
	take := func(obj any) {
		if secret, is := obj.(*corev1.Secret); is {
			served.take(secret)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: take, UpdateFunc: func(_, obj any) { take(obj) },
	}); err != nil {
		return nil, fmt.Errorf("watch Secret %s: %w", options.Secret, err)
	}
	keeper := &Keeper{Source: writes.source, Target: writes.target, Clock: clock.RealClock{}, Options: options}
	return served, addController(mgr, keeper, secrets, configurations)
}

type clients struct{ source, target client.Client }

// newClients returns clients without caches, so that no other Secret is kept in memory.
func newClients(mgr manager.Manager, target *rest.Config) (clients, error) {
	source, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return clients{}, fmt.Errorf("create a client for the certificates of webhooks in the source cluster: %w", err)
	}
	other, err := client.New(target, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return clients{}, fmt.Errorf("create a client for the certificates of webhooks in the target cluster: %w", err)
	}
	return clients{source, other}, nil
}

// newCaches returns a cache of the Secret and a cache of the metadata of the webhook configurations.
func newCaches(mgr manager.Manager, target *rest.Config, options Options) (secrets, configurations cache.Cache, err error) {
	secrets, err = cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), NewInformer: rewatch.NewInformer, ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{options.Secret.Namespace: {
				FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, options.Secret.Name),
			}}},
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("create a cache of Secret %s: %w", options.Secret, err)
	}
	configurations, err = cache.New(target, cache.Options{
		Scheme: mgr.GetScheme(), NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("create a cache of webhook configurations: %w", err)
	}
	return secrets, configurations, nil
}

func addController(mgr manager.Manager, keeper *Keeper, secrets, configurations cache.Cache) error {
	// All events enqueue the same request. It is also enqueued at the start, because the Secret might not exist yet.
	request := reconcile.Request{NamespacedName: keeper.Options.Secret}
	named := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return slices.Contains(keeper.Options.Configurations, object.GetName())
	})
	of := func(kind string) client.Object {
		return watches.Metadata(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
	}
	_, err := watches.Controller{Name: controllerName, Reconciler: keeper, Workers: 1}.AddTo(mgr,
		watches.AtStart(request),
		watches.Mapped(secrets, &corev1.Secret{}, watches.To(request)),
		watches.Mapped(configurations, of("MutatingWebhookConfiguration"), watches.To(request), named),
		watches.Mapped(configurations, of("ValidatingWebhookConfiguration"), watches.To(request), named),
	)
	return err
}

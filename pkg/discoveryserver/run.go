package discoveryserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/program/manager"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/certificates"
)

// component is the name of the process in user agents.
const component = "discovery-server"

// Limits of requests to the API server: one watch.
const (
	requestsPerSecond = 5
	requestsBurst     = 10
)

// Limits of requests from the network. Documents are small, and requests have no body.
const (
	maxHeader     = 8 << 10
	readTimeout   = 10 * time.Second
	writeTimeout  = 10 * time.Second
	idleTimeout   = time.Minute
	shutdownAfter = 5 * time.Second
)

// Options are the options of a discovery server.
type Options struct {
	// Version of the program.
	Version string
	// Kubeconfig of the garden is a path; empty for the service account of the Pod.
	Kubeconfig string
	// CertificateFile and KeyFile are the paths of the certificate of the server and its key.
	CertificateFile, KeyFile string
	// IdentityConfigurationFile and IdentityKeysFile are the paths of the documents of the issuer of WorkloadIdentities; both empty for none.
	IdentityConfigurationFile, IdentityKeysFile string
	// Address, HealthAddress and MetricsAddress are where documents (with TLS), health and metrics are served.
	Address, HealthAddress, MetricsAddress string
	LogLevel, LogFormat                    string
	// Registry of the metrics; nil for that of the process.
	Registry prometheus.Registerer
}

// Run serves documents until the context ends.
func Run(ctx context.Context, o Options) error {
	if o.Registry == nil {
		o.Registry = ctrlmetrics.Registry
	}
	config, err := manager.Connect("garden", component+"/"+o.Version, componentbaseconfigv1alpha1.ClientConnectionConfiguration{
		Kubeconfig: o.Kubeconfig, QPS: requestsPerSecond, Burst: requestsBurst,
	})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	mgr, err := manager.New(manager.Options{
		Name: component, Version: o.Version, LogLevel: o.LogLevel, LogFormat: o.LogFormat, Cluster: "garden", Config: config,
		Election: &componentbaseconfigv1alpha1.LeaderElectionConfiguration{LeaderElect: ptr.To(false)},
		Scheme:   scheme, Cache: documentsCache(), Health: o.HealthAddress, Metrics: o.MetricsAddress,
	})
	if err != nil {
		return err
	}
	recorded := newMetrics(o.Registry)
	handler, err := addDocuments(ctx, mgr, recorded, o)
	if err != nil {
		return err
	}
	if err := addServer(ctx, mgr, handler, recorded, o); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// documentsCache restricts the cache to the Secrets with documents of managed issuers.
func documentsCache() cache.Options {
	selected := cache.Config{LabelSelector: labels.SelectorFromSet(labels.Set{constants.LabelDiscoveryPublic: issuer.PublicKeys})}
	return cache.Options{
		NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{constants.SystemShootIssuerNamespace: selected}},
		},
	}
}

// addDocuments reads the documents, and returns the handler that serves them.
func addDocuments(ctx context.Context, mgr *manager.Manager, recorded *serverMetrics, o Options) (http.Handler, error) {
	documents := newStore(mgr.Log.WithName("documents"), recorded.count)
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch the documents of managed issuers: %w", err)
	}
	registration, err := informer.AddEventHandler(documents.handler())
	if err != nil {
		return nil, fmt.Errorf("watch the documents of managed issuers: %w", err)
	}
	identities, err := newFiles(o.IdentityConfigurationFile, o.IdentityKeysFile, mgr.Log.WithName("workload-identities"), clock.RealClock{})
	if err != nil {
		return nil, err
	}
	if identities != nil {
		err = mgr.Add(identities)
	}
	return newHandler(handler{shoots: documents, identities: identities, synced: registration.HasSynced, metrics: recorded}), errors.Join(err,
		mgr.AddReadyzCheck("documents", func(*http.Request) error {
			if !registration.HasSynced() {
				return errors.New("the documents of managed issuers have not been read yet")
			}
			return nil
		}))
}

// addServer serves the handler with TLS.
func addServer(ctx context.Context, mgr *manager.Manager, handler http.Handler, recorded *serverMetrics, o Options) error {
	log := mgr.Log.WithName("server")
	certificate, err := certificates.FromFiles(o.CertificateFile, o.KeyFile, recorded.shows, log, clock.RealClock{})
	if err != nil {
		return fmt.Errorf("read the certificate of --tls-cert-file and --tls-private-key-file: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", o.Address, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	certificates.Show(certificate.GetCertificate)(config)
	return errors.Join(mgr.Add(certificate), mgr.Add(&ctrlmanager.Server{
		Name: "documents", Listener: tls.NewListener(listener, config), ShutdownTimeout: ptr.To(shutdownAfter),
		Server: &http.Server{
			Handler: handler, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		},
	}))
}

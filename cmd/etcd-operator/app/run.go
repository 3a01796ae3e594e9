package app

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/process"
	"github.com/trellis-k8s/trellis/pkg/program/manager"
)

// run starts the operator. It returns when the context ends, an error occurs, or another process becomes the leader.
func run(ctx context.Context, settings *config.Operator) error {
	access, err := restConfig(settings)
	if err != nil {
		return err
	}
	mgr, err := newManager(settings, access)
	if err != nil {
		return err
	}
	reconciler, err := etcd.New(ctx, mgr, mgr.Recorder, etcd.Options{
		Class: settings.Controllers.Etcd.ResourceClass, MemberImage: settings.MemberImage, Version: version,
		AutoReconcile: settings.Controllers.Etcd.EnableEtcdSpecAutoReconcile,
		Workers:       settings.Controllers.Etcd.ConcurrentSyncs, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	if err := reconciler.AddToManager(mgr); err != nil {
		return fmt.Errorf("watch Etcds: %w", err)
	}
	return mgr.Start(ctx)
}

func newManager(settings *config.Operator, access *rest.Config) (*manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), druidv1alpha1.AddToScheme(scheme),
		resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return manager.New(manager.Options{
		Name: "etcd-operator", Version: version, LogLevel: settings.LogLevel, LogFormat: settings.LogFormat,
		Cluster: "cluster", Config: access, Election: &settings.LeaderElection, Scheme: scheme,
		Cache:  cache.Options{ByObject: etcd.CacheOptions(), DefaultTransform: cache.TransformStripManagedFields()},
		Health: address(settings.Server.HealthProbes), Metrics: address(settings.Server.Metrics),
		InformersCheck: "informers-synced",
	})
}

// restConfig returns the connection to the cluster, from the kubeconfig file or, without one, from the Pod's service
// account.
func restConfig(settings *config.Operator) (*rest.Config, error) {
	connection := settings.ClientConnection
	access, err := process.RestConfig(connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the connection to the cluster (clientConnection.kubeconfig): %w", err)
	}
	access.UserAgent = "etcd-operator/" + version
	access.QPS, access.Burst = connection.QPS, connection.Burst
	return access, nil
}

func address(at config.Address) string {
	return manager.Address(at.BindAddress, at.Port)
}

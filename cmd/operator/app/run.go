package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/registrar"
	"github.com/trellis-k8s/trellis/pkg/operator/schemes"
	"github.com/trellis-k8s/trellis/pkg/operator/virtual"
	"github.com/trellis-k8s/trellis/pkg/program/manager"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// component is the name of the process in Events, user agents and the status of Gardens.
const component = "gardener-operator"

// run starts an operator. It returns when the context ends, the Garden is gone, or an error occurs.
func run(ctx context.Context, c *v1alpha1.OperatorConfiguration) error {
	config, err := manager.Connect("runtime cluster", component+"/"+version, c.RuntimeClientConnection)
	if err != nil {
		return err
	}
	controllers := operator.Controllers()
	kinds, err := controllers.Cache()
	if err != nil {
		return err
	}
	mgr, err := manager.New(manager.Options{
		Name: component, Version: version, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
		Cluster: "runtime cluster", Config: config, Election: c.LeaderElection, Scheme: schemes.Runtime(),
		Cache: cache.Options{
			NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(), ByObject: kinds,
		},
		Health: address(c.Server.HealthProbes), Metrics: address(c.Server.Metrics), Debugging: c.Debugging,
	})
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of this host: %w", err)
	}
	directory, err := os.MkdirTemp("", component+"-")
	if err != nil {
		return fmt.Errorf("create a directory for the token of the virtual garden: %w", err)
	}
	defer os.RemoveAll(directory) //nolint:errcheck // the process ends
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	adder := &registrar.Registrar{
		Controllers: controllers, Stop: stop,
		Deps: controller.Deps{
			Manager: mgr, Recorder: mgr.Recorder, Clock: clock.RealClock{}, Config: c, Version: version, Namespace: constants.GardenNamespace,
			Identity: &corev1beta1.Gardener{ID: host, Name: component, Version: version},
		},
		Access: virtual.New(nil, constants.GardenNamespace, directory, component+"/"+version, c, nil),
		Connect: func(config *rest.Config) (cluster.Cluster, error) {
			mgr.Election.Guard(config)
			return schemes.ConnectVirtual(config)
		},
	}
	if err := errors.Join(adder.AddToManager(ctx), addWebhooks(ctx, mgr, c.Server.Webhooks)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func address(server *v1alpha1.Server) string { return manager.Address(server.BindAddress, server.Port) }

// Package registrar adds the controllers that need a Garden or the virtual garden once these exist. When the Garden is gone, the process
// ends, and starts again without them.
package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/virtual"
)

// again is how long to wait for the virtual garden before the next attempt.
const again = 2 * time.Second

// Registrar adds the controllers of a table to a manager.
type Registrar struct {
	Controllers controller.Set
	// Deps of the controllers, without the virtual garden.
	Deps controller.Deps
	// Access to the virtual garden. Connect returns its client and cache.
	Access  *virtual.Access
	Connect func(*rest.Config) (cluster.Cluster, error)
	// Stop ends the process.
	Stop func()

	// reader reads Gardens through the cache of the manager.
	reader client.Reader
	// added is the latest time whose controllers run.
	added controller.When
	// connected is the virtual garden. Its cache runs as soon as it is set.
	connected cluster.Cluster
}

// Reconcile adds what is due. It also keeps the token for the virtual garden up to date.
func (r *Registrar) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var gardens operatorv1alpha1.GardenList
	if err := r.reader.List(ctx, &gardens); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the Gardens: %w", err)
	}
	next, stop := decide(gardens.Items, r.added)
	if stop {
		log.FromContext(ctx).Info("The Garden is gone: the process ends, so that it starts again without the controllers of the garden")
		r.Stop()
		return reconcile.Result{}, nil
	}
	if r.added < controller.WithGarden && next >= controller.WithGarden {
		if err := r.Controllers.Add(ctx, r.Deps, controller.WithGarden); err != nil {
			return reconcile.Result{}, r.fatal(ctx, err)
		}
		r.added = controller.WithGarden
	}
	if next < controller.WithVirtual {
		return reconcile.Result{}, nil
	}
	return r.connect(ctx)
}

// connect connects to the virtual garden and adds its controllers, or renews the token of the connection.
func (r *Registrar) connect(ctx context.Context) (reconcile.Result, error) {
	config, err := r.Access.Refresh(ctx)
	switch {
	case errors.Is(err, virtual.ErrReplaced):
		log.FromContext(ctx).Info("The process ends, so that it connects to the virtual garden again", "because", err.Error())
		r.Stop()
		return reconcile.Result{}, nil
	case errors.Is(err, virtual.ErrNotReady) && r.connected == nil:
		return reconcile.Result{RequeueAfter: again}, nil
	case errors.Is(err, virtual.ErrNotReady):
		return reconcile.Result{}, nil // a watch of the Secret shows the next token
	case err != nil:
		return reconcile.Result{}, err
	}
	if r.connected == nil {
		if err := r.open(config); err != nil {
			return reconcile.Result{RequeueAfter: again}, err
		}
	}
	if r.added >= controller.WithVirtual {
		return reconcile.Result{}, nil
	}
	deps := r.Deps
	deps.Virtual = r.connected
	if err := r.Controllers.Add(ctx, deps, controller.WithVirtual); err != nil {
		return reconcile.Result{}, r.fatal(ctx, err)
	}
	r.added = controller.WithVirtual
	return reconcile.Result{}, nil
}

// open starts the cache of the virtual garden.
func (r *Registrar) open(config *rest.Config) error {
	connected, err := r.Connect(config)
	if err != nil {
		return fmt.Errorf("connect to the virtual garden: %w", err)
	}
	if err := r.Deps.Manager.Add(connected); err != nil {
		return fmt.Errorf("start the cache of the virtual garden: %w", err)
	}
	r.connected = connected
	return nil
}

// fatal ends the process: some controllers of a table may be added already, and cannot be added again.
func (r *Registrar) fatal(ctx context.Context, err error) error {
	log.FromContext(ctx).Error(err, "The process ends, because a controller cannot be added")
	r.Stop()
	return err
}

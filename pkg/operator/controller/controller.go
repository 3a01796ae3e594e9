// Package controller has what the controllers of the operator share: how each of them states when it runs, what it caches and what it may
// do. The table in package operator lists them.
package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/rights"
)

// FieldManager is the field manager of all writes of the operator.
const FieldManager client.FieldOwner = "gardener-operator"

// When is the time from which a controller runs.
type When int

// The times, in their order.
const (
	// Always runs as long as the process leads.
	Always When = iota
	// WithGarden runs from the time at which a Garden exists.
	WithGarden
	// WithVirtual runs from the time at which the virtual garden can be reached: see [Deps.Virtual].
	WithVirtual
)

// Controller describes one controller, or several that work together.
type Controller struct {
	// Name of the controller in the table.
	Name string
	// When it runs.
	When When
	// Add adds the controller to the manager of the runtime cluster, which runs already unless the controller runs always.
	Add func(context.Context, Deps) error
	// Selects restrict which objects of a kind the cache of the manager has, or how. Only one controller may select a kind.
	Selects []Select
	// Rights are the permissions that it needs in the runtime cluster. In the virtual garden, the operator has all.
	Rights []rights.Right
}

// Select restricts the cache of a kind.
type Select struct {
	Object  client.Object
	Options cache.ByObject
}

// Deps are what controllers use.
type Deps struct {
	// Manager has the client and the cache of the runtime cluster.
	Manager manager.Manager
	// Virtual is the virtual garden, with the kinds of the garden's API. It is nil for controllers that do not wait for it.
	Virtual cluster.Cluster
	// Recorder writes Events in the runtime cluster.
	Recorder events.EventRecorder
	Clock    clock.WithTicker
	// Config is the configuration with its defaults.
	Config *v1alpha1.OperatorConfiguration
	// Identity of this operator, and the Version of the program.
	Identity *corev1beta1.Gardener
	Version  string
	// Namespace of the operator in the runtime cluster: garden.
	Namespace string
	// Address returns the URL at which this process reaches the API server of the virtual garden. If it is nil, the address of its
	// Service is used.
	Address func() string
}

// Set is the controllers of one process.
type Set []Controller

// Add adds the controllers that run from a time on.
func (s Set) Add(ctx context.Context, deps Deps, when When) error {
	var errs []error
	for _, one := range s {
		if one.When != when {
			continue
		}
		if err := one.Add(ctx, deps); err != nil {
			errs = append(errs, fmt.Errorf("add the controller %s: %w", one.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Cache returns the options of the cache by kind. It fails if two controllers restrict the same kind, because a cache can have only
// one restriction for each kind.
func (s Set) Cache() (map[client.Object]cache.ByObject, error) {
	by, options := map[string]string{}, map[client.Object]cache.ByObject{}
	for _, one := range s {
		for _, selected := range one.Selects {
			kind := fmt.Sprintf("%T %s", selected.Object, selected.Object.GetObjectKind().GroupVersionKind().Kind)
			if by[kind] != "" {
				return nil, fmt.Errorf("the controllers %s and %s both select which objects of %s are cached", by[kind], one.Name, kind)
			}
			by[kind], options[selected.Object] = one.Name, selected.Options
		}
	}
	return options, nil
}

// RightsYAML returns the permissions of all controllers in the runtime cluster as YAML: those in the whole cluster for the ClusterRole of the
// chart, or those in the namespace of the operator for its Role.
func (s Set) RightsYAML(namespaced bool) ([]byte, error) {
	all := make([]rights.Needs, 0, len(s))
	for _, one := range s {
		needs := rights.Needs{Name: one.Name}
		for _, right := range one.Rights {
			if right.Namespaced == namespaced {
				needs.Rights = append(needs.Rights, right)
			}
		}
		all = append(all, needs)
	}
	return rights.YAML(all)
}

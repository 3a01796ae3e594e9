// Package controller has what the controllers of a controller-manager share: how each of them states what it caches, indexes and
// may do, and helpers for their watches. The table in package controllermanager lists them.
package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/rights"
)

// FieldManager is the field manager of all writes of a controller-manager.
const FieldManager client.FieldOwner = "gardener-controller-manager"

// Controller describes one controller, or several that work together.
type Controller struct {
	// Name of the controller in the table.
	Name string
	// Add adds the controller to the manager of the garden, before that starts.
	Add func(context.Context, manager.Manager, Deps) error
	// Keeps are the fields that it reads from the cache. Objects of a kind that no controller reduces are cached whole.
	Keeps []Keep
	// Selects restrict which objects of a kind are cached, or how. Only one controller may select a kind.
	Selects []Select
	// Indexes are the indexes that it uses.
	Indexes []Index
	// Rights are the permissions that it needs in the garden.
	Rights []Right
}

// Deps are what controllers use.
type Deps struct {
	// Client reads from the cache of the garden and writes to its API server. Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Recorder writes Events.
	Recorder events.EventRecorder
	Clock    clock.WithTicker
	// Config is the configuration with its defaults.
	Config *v1alpha1.ControllersConfiguration
}

// Select restricts the cache of a kind.
type Select struct {
	Object  client.Object
	Options cache.ByObject
}

// Index is an index of the cache. Controllers may share one with the same kind and field.
type Index struct {
	Object client.Object
	Field  string
	Values client.IndexerFunc
}

// Right is a permission in the garden.
type Right = rights.Right

// May returns a right for resources of one API group.
func May(purpose, group string, resources []string, verbs ...string) Right {
	return rights.May(purpose, group, resources, verbs...)
}

// Reads are the verbs for objects that are cached.
func Reads() []string { return rights.Reads() }

// Set is the controllers of one process.
type Set []Controller

// Add adds the indexes and controllers to a manager whose cache has the options that Cache returns.
func (s Set) Add(ctx context.Context, mgr manager.Manager, deps Deps) error {
	added := map[string]bool{}
	for _, one := range s {
		for _, index := range one.Indexes {
			key := fmt.Sprintf("%T %s", index.Object, index.Field)
			if added[key] {
				continue
			}
			added[key] = true
			if err := mgr.GetFieldIndexer().IndexField(ctx, index.Object, index.Field, index.Values); err != nil {
				return fmt.Errorf("add the index %s for the controller %s: %w", key, one.Name, err)
			}
		}
	}
	var errs []error
	for _, one := range s {
		if err := one.Add(ctx, mgr, deps); err != nil {
			errs = append(errs, fmt.Errorf("add the controller %s: %w", one.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Rights returns the permissions of all controllers in the garden as YAML, for the ClusterRole of the chart.
func (s Set) Rights() ([]byte, error) {
	all := make([]rights.Needs, 0, len(s))
	for _, one := range s {
		all = append(all, rights.Needs{Name: one.Name, Rights: one.Rights})
	}
	return rights.YAML(all)
}

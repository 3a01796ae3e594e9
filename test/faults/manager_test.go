package faults

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// startManagers runs a resource-manager, and one of the new class if ManagedResources move to that class.
func (w *world) startManagers(l *line) (stop func()) {
	first := w.keepRunning(l, "", w.manager(w.class()))
	if len(w.reclassed) == 0 {
		return first
	}
	second := w.keepRunning(l, "new", w.manager(w.newClass()))
	return func() { first(); second() }
}

// manager returns a resource-manager of a class, wired as the program wires it. When stopped, it finishes the
// current reconciliations, so that nothing changes after it has stopped. When it crashes, all calls fail at once.
func (w *world) manager(class string) func(context.Context, *life) error {
	return func(ctx context.Context, l *life) error {
		config := w.controlPlane.Config()
		config.Wrap(l.wrap)
		parts, err := inprocess.ResourceManager{
			Scheme: w.client.Scheme(), Source: config, Target: config, Namespaces: []string{w.namespace}, Class: class, Identity: w.class(),
			PruneDelay: w.pruneDelay, CollectsGarbage: w.collects, EndsWork: true,
		}.New(ctx)
		if err != nil {
			return err
		}
		if w.collects {
			if err := addCollector(parts.Manager, config, w.namespace, &w.collecting); err != nil {
				return err
			}
		}
		return parts.Manager.Start(ctx)
	}
}

// managerOptions are the options of a manager that can run many times in a process and that finishes its current
// reconciliations when stopped.
func managerOptions(scheme *runtime.Scheme) manager.Options {
	options := kit.ManagerOptions(scheme)
	options.GracefulShutdownTimeout = ptr.To(time.Duration(-1))
	return options
}

package health

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// resourceManager is a running resource-manager, wired in the same way as the program.
type resourceManager struct {
	*inprocess.Parts
	class string
	// source and target record the requests to the two clusters.
	source, target *kit.Requests
	// stop stops it before the test ends.
	stop func()
}

// managers counts the resource-managers.
var managers atomic.Int64

// startManager starts a resource-manager that runs until the test ends. It has its own class, identity and managed-by label, so that
// the resource-managers of other tests do not interfere. It reconciles nothing without an event.
func (f *fixture) startManager(tune ...func(*inprocess.ResourceManager)) *resourceManager {
	f.Helper()
	m := &resourceManager{class: fmt.Sprintf("class-%d", managers.Add(1)), source: &kit.Requests{}, target: &kit.Requests{}}
	r := inprocess.ResourceManager{
		Scheme: scheme(f), Source: f.controlPlane.Config(), Target: f.controlPlane.Config(), Class: m.class,
		PruneDelay: 100 * time.Millisecond,
	}
	r.Source.Wrap(m.source.Wrap)
	r.Target.Wrap(m.target.Wrap)
	for _, change := range tune {
		change(&r)
	}
	var err error
	m.Parts, err = r.New(f.ctx)
	must(f, err)
	m.class, m.stop = r.Class, kit.Run(f, m.Manager)
	return m
}

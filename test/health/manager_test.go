package health

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// resourceManager is a running resource-manager, wired as the program wires it.
type resourceManager struct {
	*inprocess.Parts
	class string
	// source and target are the requests to both clusters.
	source, target *kit.Requests
	// stop ends it before the test does.
	stop func()
}

// managers counts them.
var managers atomic.Int64

// startManager starts a resource-manager that ends with the test. Its class, identity and managed-by label are its own, so
// that those of other tests have nothing to do with it. Nothing is looked at without an event.
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

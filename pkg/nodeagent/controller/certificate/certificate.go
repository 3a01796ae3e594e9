// Package certificate renews the certificate of the node agent before it expires.
package certificate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/identity"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/loop"
)

// ErrRenewed ends the connections with the old certificate.
var ErrRenewed = errors.New("the node agent has a new certificate")

// Controller renews a certificate.
type Controller struct {
	Requests identity.Requests
	Files    identity.Files
	Clock    clock.WithTicker
	Log      logr.Logger
	// Due is when the certificate is renewed.
	Due time.Time
	// Changes is held by others while they change the machine. The end of the connection waits for it.
	Changes sync.Locker
}

// Run requests a new certificate when it is time, and stores it.
func (c *Controller) Run(ctx context.Context) (time.Duration, error) {
	if wait := c.Due.Sub(c.Clock.Now()); wait > 0 {
		return wait, nil
	}
	machine, err := c.Files.Machine()
	if err != nil {
		return 0, err
	}
	certificate, key, err := identity.Request(ctx, c.Requests, machine, c.Clock)
	if err != nil {
		return 0, err
	}
	c.Changes.Lock()
	defer c.Changes.Unlock()
	if err := c.Files.Store(certificate, key); err != nil {
		return 0, err
	}
	c.Log.Info("Renewed the certificate")
	return 0, loop.End(ErrRenewed)
}

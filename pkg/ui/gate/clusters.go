package gate

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// clusters are those of a viewer, reached by their tokens.
type clusters struct {
	source *rest.Config
	// target is nil without a token for it, and if it is the source cluster.
	target       *rest.Config
	hasOwnTarget bool
}

// Source returns how the cluster with the ManagedResources is reached.
func (c *clusters) Source() (*rest.Config, error) { return c.source, nil }

// Target returns how the cluster with the objects is reached; ErrNoTarget without a token for it.
func (c *clusters) Target() (*rest.Config, error) {
	switch {
	case !c.hasOwnTarget:
		return c.source, nil
	case c.target == nil:
		return nil, fmt.Errorf("%w: the objects are in another cluster, and you gave no token for that. Log out, and log in with both", console.ErrNoTarget)
	}
	return c.target, nil
}

// HasOwnTarget reports whether the objects are in another cluster than the ManagedResources.
func (c *clusters) HasOwnTarget() bool { return c.hasOwnTarget }

// Garden returns how the garden is reached: no view reads it yet.
func (c *clusters) Garden() (*rest.Config, error) { return c.source, nil }

// HasOwnGarden reports that no other cluster is configured.
func (c *clusters) HasOwnGarden() bool { return false }

// AddFlags does nothing: there is no command line.
func (c *clusters) AddFlags(*pflag.FlagSet) {}

// TargetMapper is for names that people type.
func (c *clusters) TargetMapper() (meta.RESTMapper, error) {
	return nil, errors.New("kinds are not named by people here")
}

// Namespace returns none: no command is about one.
func (c *clusters) Namespace() (string, error) { return "", nil }

// SetNamespace does nothing.
func (c *clusters) SetNamespace(string) {}

// Kubeconfig returns none.
func (c *clusters) Kubeconfig() (config *clientcmdapi.Config, context string) { return nil, "" }

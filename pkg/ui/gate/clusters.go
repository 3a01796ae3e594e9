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

// clusters are the clusters of a viewer, which are accessed with the viewer's tokens.
type clusters struct {
	source *rest.Config
	// target is nil without a token for it, and if the objects are in the source cluster.
	target       *rest.Config
	hasOwnTarget bool
}

// Source returns the configuration for the cluster with the ManagedResources.
func (c *clusters) Source() (*rest.Config, error) { return c.source, nil }

// Target returns the configuration for the cluster with the objects. It returns ErrNoTarget without a token for it.
func (c *clusters) Target() (*rest.Config, error) {
	switch {
	case !c.hasOwnTarget:
		return c.source, nil
	case c.target == nil:
		return nil, fmt.Errorf("%w: the objects are in another cluster, and you entered no token for it. Log out, and log in with both tokens",
			console.ErrNoTarget)
	}
	return c.target, nil
}

// HasOwnTarget reports whether the objects are in another cluster than the ManagedResources.
func (c *clusters) HasOwnTarget() bool { return c.hasOwnTarget }

// Garden returns the source cluster, because no view reads the garden yet.
func (c *clusters) Garden() (*rest.Config, error) { return c.source, nil }

// HasOwnGarden returns false, because no other cluster is configured.
func (c *clusters) HasOwnGarden() bool { return false }

// AddFlags does nothing, because there is no command line.
func (c *clusters) AddFlags(*pflag.FlagSet) {}

// TargetMapper returns an error, because users do not enter kinds.
func (c *clusters) TargetMapper() (meta.RESTMapper, error) {
	return nil, errors.New("the page does not look up kinds by name")
}

// Namespace returns none, because there are no commands.
func (c *clusters) Namespace() (string, error) { return "", nil }

// SetNamespace does nothing.
func (c *clusters) SetNamespace(string) {}

// Kubeconfig returns none.
func (c *clusters) Kubeconfig() (config *clientcmdapi.Config, context string) { return nil, "" }

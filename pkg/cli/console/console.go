// Package console is shared by all commands of kubectl mr: access to the clusters, and output for people.
package console

import (
	"io"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// Clusters says how clusters are reached.
type Clusters interface {
	// AddFlags adds what names them on the command line.
	AddFlags(flags *pflag.FlagSet)
	// Source and Target return how the cluster with the ManagedResources and the one with the objects are reached.
	Source() (*rest.Config, error)
	Target() (*rest.Config, error)
	// HasOwnTarget reports whether the two clusters are configured separately.
	HasOwnTarget() bool
	// Garden returns how the cluster with Shoots and Seeds is reached, and HasOwnGarden whether it is configured separately from the source cluster.
	Garden() (*rest.Config, error)
	HasOwnGarden() bool
	// TargetMapper knows the names of kinds of the target cluster, short ones too, as kubectl does.
	TargetMapper() (meta.RESTMapper, error)
	// Namespace is the one that commands are about. SetNamespace overrides it.
	Namespace() (string, error)
	SetNamespace(namespace string)
	// Kubeconfig is what names the source cluster, and its context that counts; nil if that is not a kubeconfig.
	Kubeconfig() (config *clientcmdapi.Config, context string)
}

// Console is where a command runs. Its clusters are reached when they are first asked for.
type Console struct {
	// In is what is read by "-f -".
	In io.Reader
	// Screen is where results go, Err where progress, warnings and errors go.
	Screen, Err screen.Screen
	Clock       clock.WithTicker
	// Version is that of the program, for its user agent.
	Version string
	// Wrap changes how clusters are reached; nil for tests only.
	Wrap func(*rest.Config) *rest.Config

	clusters Clusters

	source *Source
	target *Target
	// placed says which cluster has the objects of a ManagedResource; nil if all are in the target cluster.
	placed func(*resourcesv1alpha1.ManagedResource) (*Target, error)
	// stderr is the writer of Err.
	stderr *orderly
}

// New returns a console with these clusters.
func New(streams genericiooptions.IOStreams, version string, clusters Clusters) *Console {
	c := &Console{
		In: streams.In, Screen: screen.Of(streams.Out), Err: screen.Of(streams.ErrOut), Clock: clock.RealClock{}, Version: version,
		clusters: clusters,
	}
	c.stderr = &orderly{writer: c.Err.Writer}
	c.Err.Writer = c.stderr
	return c
}

// Divert returns the console with progress, warnings and errors, also those of its clusters, going to a writer that is not a terminal,
// until the function is called that is returned, too.
func (c *Console) Divert(to io.Writer) (diverted *Console, end func()) {
	before := c.stderr.redirect(to)
	diverted = ptr.To(*c)
	diverted.Err = screen.Screen{Writer: c.stderr}
	return diverted, func() { c.stderr.redirect(before) }
}

// AddFlags adds the flags that name the clusters.
func (c *Console) AddFlags(flags *pflag.FlagSet) { c.clusters.AddFlags(flags) }

// Tune sets how clusters are talked to: a person waits, and the API server defends itself (API priority and fairness).
func (c *Console) Tune(config *rest.Config) *rest.Config {
	config.QPS = -1
	config.UserAgent = "kubectl-mr/" + c.Version
	if c.Wrap != nil {
		return c.Wrap(config)
	}
	return config
}

// Namespace returns the namespace that a command is about: that of the flag or of the kubeconfig's context.
func (c *Console) Namespace() (string, error) { return c.clusters.Namespace() }

// SetNamespace overrides the flag.
func (c *Console) SetNamespace(namespace string) { c.clusters.SetNamespace(namespace) }

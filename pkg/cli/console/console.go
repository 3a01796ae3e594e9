// Package console provides access to clusters and prints output for all commands of kubectl mr.
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

// FieldManager owns the fields that commands write. They are manual changes: Gardener's own controllers and kubectl may
// remove them.
const FieldManager = "kubectl-mr"

// Clusters provides the configuration for connecting to clusters.
type Clusters interface {
	// AddFlags adds the flags that select the clusters.
	AddFlags(flags *pflag.FlagSet)
	// Source returns the configuration for the cluster with the ManagedResources, and Target that for the cluster with
	// the
	// objects.
	Source() (*rest.Config, error)
	Target() (*rest.Config, error)
	// HasOwnTarget reports whether the two clusters are configured separately.
	HasOwnTarget() bool
	// Garden returns the configuration for the cluster with Shoots and Seeds. HasOwnGarden reports whether it is
	// configured
	// separately from the source cluster.
	Garden() (*rest.Config, error)
	HasOwnGarden() bool
	// TargetMapper returns the kinds of the target cluster and their short names, as kubectl does.
	TargetMapper() (meta.RESTMapper, error)
	// Namespace returns the namespace that commands use. SetNamespace overrides it.
	Namespace() (string, error)
	SetNamespace(namespace string)
	// Kubeconfig returns the kubeconfig of the source cluster and the selected context. It returns nil if the cluster is
	// not
	// configured by a kubeconfig.
	Kubeconfig() (config *clientcmdapi.Config, context string)
}

// Console is the environment of a command. It connects to clusters when a command first uses them.
type Console struct {
	// In is read by "-f -".
	In io.Reader
	// Screen prints results. Err prints progress, warnings and errors.
	Screen, Err screen.Screen
	Clock       clock.WithTicker
	// Version is the version of the program. It is part of the user agent.
	Version string
	// Wrap changes the configuration of clusters in tests. It is nil otherwise.
	Wrap func(*rest.Config) *rest.Config

	clusters Clusters

	source *Source
	target *Target
	// placed returns the cluster with the objects of a ManagedResource. It is nil if the target cluster has all objects.
	placed func(*resourcesv1alpha1.ManagedResource) (*Target, error)
	// stderr is the writer of Err, and serializes writes.
	stderr *syncWriter
}

// New returns a console with these clusters.
func New(streams genericiooptions.IOStreams, version string, clusters Clusters) *Console {
	c := &Console{
		In: streams.In, Screen: screen.Of(streams.Out), Err: screen.Of(streams.ErrOut), Clock: clock.RealClock{}, Version: version,
		clusters: clusters,
	}
	c.stderr = &syncWriter{writer: c.Err.Writer}
	c.Err.Writer = c.stderr
	return c
}

// Divert returns a console that writes progress, warnings and errors to a writer that is not a terminal, until end is
// called.
// This includes the warnings of the clusters of c.
func (c *Console) Divert(to io.Writer) (diverted *Console, end func()) {
	before := c.stderr.redirect(to)
	diverted = ptr.To(*c)
	diverted.Err = screen.Screen{Writer: c.stderr}
	return diverted, func() { c.stderr.redirect(before) }
}

// AddFlags adds the flags that name the clusters.
func (c *Console) AddFlags(flags *pflag.FlagSet) { c.clusters.AddFlags(flags) }

// Tune sets the user agent and disables client-side rate limiting: a user is waiting, and API priority and fairness
// protects
// the API server.
func (c *Console) Tune(config *rest.Config) *rest.Config {
	config.QPS = -1
	config.UserAgent = "kubectl-mr/" + c.Version
	if c.Wrap != nil {
		return c.Wrap(config)
	}
	return config
}

// Namespace returns the namespace of the flag or of the kubeconfig's context.
func (c *Console) Namespace() (string, error) { return c.clusters.Namespace() }

// SetNamespace overrides the namespace of the flag.
func (c *Console) SetNamespace(namespace string) { c.clusters.SetNamespace(namespace) }

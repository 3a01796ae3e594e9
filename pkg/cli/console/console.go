// Package console is what all commands of kubectl mr share: the clusters they talk to and what they say to people.
package console

import (
	"io"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// targetKubeconfigVariable names the kubeconfig of the target cluster, as for the resource-manager.
const targetKubeconfigVariable = "TARGET_KUBECONFIG"

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

	flags                           *genericclioptions.ConfigFlags
	targetKubeconfig, targetContext string

	source *Source
	target *Target
	// told is where Err goes.
	told *orderly
}

// New returns a console.
func New(streams genericiooptions.IOStreams, version string) *Console {
	c := &Console{
		In: streams.In, Screen: screen.Of(streams.Out), Err: screen.Of(streams.ErrOut), Clock: clock.RealClock{}, Version: version,
	}
	c.told = &orderly{writer: c.Err.Writer}
	c.Err.Writer = c.told
	warnings := rest.NewWarningWriter(c.Err, rest.WarningWriterOptions{Deduplicate: true})
	c.flags = genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = warnings
		return c.tune(config)
	})
	return c
}

// Divert returns the console with progress, warnings and errors, also those of its clusters, going to a writer that is no terminal,
// until the function is called that is returned, too.
func (c *Console) Divert(to io.Writer) (diverted *Console, end func()) {
	before := c.told.redirect(to)
	diverted = ptr.To(*c)
	diverted.Err = screen.Screen{Writer: c.told}
	return diverted, func() { c.told.redirect(before) }
}

// AddFlags adds kubectl's flags, which are for the source cluster, and those that name the target cluster.
func (c *Console) AddFlags(flags *pflag.FlagSet) {
	c.flags.AddFlags(flags)
	if namespace := flags.Lookup("namespace"); namespace != nil {
		namespace.Usage = "The namespace of the ManagedResources"
	}
	flags.StringVar(&c.targetKubeconfig, "target-kubeconfig", os.Getenv(targetKubeconfigVariable),
		"Path of the kubeconfig of the cluster that has the objects; the same as the one with the ManagedResources by default")
	flags.StringVar(&c.targetContext, "target-context", "",
		"The context of the cluster that has the objects")
}

// tune sets how clusters are talked to: a person waits, and the API server defends itself (API priority and fairness).
func (c *Console) tune(config *rest.Config) *rest.Config {
	config.QPS = -1
	config.UserAgent = "kubectl-mr/" + c.Version
	if c.Wrap != nil {
		return c.Wrap(config)
	}
	return config
}

// Namespace returns the namespace that a command is about: that of the flag or of the kubeconfig's context.
func (c *Console) Namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// SetNamespace overrides the flag.
func (c *Console) SetNamespace(namespace string) { *c.flags.Namespace = namespace }

// hasOwnTarget tells whether the target cluster is reached in another way than the source cluster.
func (c *Console) hasOwnTarget() bool { return c.targetKubeconfig != "" || c.targetContext != "" }

// targetFlags returns how the target cluster is reached.
func (c *Console) targetFlags() *genericclioptions.ConfigFlags {
	if !c.hasOwnTarget() {
		return c.flags
	}
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(c.tune)
	flags.CacheDir, flags.Timeout = c.flags.CacheDir, c.flags.Timeout
	flags.KubeConfig, flags.Context = &c.targetKubeconfig, &c.targetContext
	if c.targetKubeconfig == "" {
		flags.KubeConfig = c.flags.KubeConfig
	}
	return flags
}

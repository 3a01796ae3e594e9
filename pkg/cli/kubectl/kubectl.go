// Package kubectl configures the clusters of a console with kubectl's flags, and prints objects as kubectl does.
package kubectl

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// Environment variables with kubeconfigs: that of the target cluster, as in the resource-manager, and that of the
// garden, as in gardenlet.
const (
	targetKubeconfigVariable = "TARGET_KUBECONFIG"
	gardenKubeconfigVariable = "GARDEN_KUBECONFIG"
)

// NewConsole returns a console whose clusters are configured by kubectl's flags and by kubeconfigs.
func NewConsole(streams genericiooptions.IOStreams, version string) *console.Console {
	named := &clusters{}
	c := console.New(streams, version, named)
	warnings := rest.NewWarningWriter(c.Err, rest.WarningWriterOptions{Deduplicate: true})
	named.tune = c.Tune
	named.flags = genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = warnings
		return c.Tune(config)
	})
	return c
}

// clusters implements console.Clusters with flags.
type clusters struct {
	flags                           *genericclioptions.ConfigFlags
	targetKubeconfig, targetContext string
	gardenKubeconfig, gardenContext string
	tune                            func(*rest.Config) *rest.Config
	// ofTarget are the flags for the target cluster. They are created once.
	ofTarget *genericclioptions.ConfigFlags
}

// AddFlags adds kubectl's flags, which select the source cluster, and flags that select the target cluster and the
// garden.
func (c *clusters) AddFlags(flags *pflag.FlagSet) {
	c.flags.AddFlags(flags)
	if namespace := flags.Lookup("namespace"); namespace != nil {
		namespace.Usage = "The namespace of the ManagedResources"
	}
	flags.StringVar(&c.targetKubeconfig, "target-kubeconfig", os.Getenv(targetKubeconfigVariable),
		"Path of the kubeconfig of the cluster with the objects (default: the cluster with the ManagedResources)")
	flags.StringVar(&c.targetContext, "target-context", "",
		"Context of the cluster with the objects")
	flags.StringVar(&c.gardenKubeconfig, "garden-kubeconfig", os.Getenv(gardenKubeconfigVariable),
		"Path of the kubeconfig of the garden, for shoot/NAMESPACE/NAME and seed/NAME (default: the cluster with the ManagedResources)")
	flags.StringVar(&c.gardenContext, "garden-context", "", "Context of the garden")
}

// Source returns the configuration for the source cluster.
func (c *clusters) Source() (*rest.Config, error) { return restConfig(c.flags) }

// Target returns the configuration for the target cluster.
func (c *clusters) Target() (*rest.Config, error) { return restConfig(c.targetFlags()) }

// Garden returns the configuration for the garden.
func (c *clusters) Garden() (*rest.Config, error) {
	if !c.HasOwnGarden() {
		return c.Source()
	}
	return restConfig(c.otherFlags(&c.gardenKubeconfig, &c.gardenContext))
}

// HasOwnGarden reports whether the garden is configured separately from the source cluster.
func (c *clusters) HasOwnGarden() bool { return c.gardenKubeconfig != "" || c.gardenContext != "" }

// TargetMapper returns the kinds of the target cluster.
func (c *clusters) TargetMapper() (meta.RESTMapper, error) { return c.targetFlags().ToRESTMapper() }

// HasOwnTarget reports whether the target cluster is configured separately from the source cluster.
func (c *clusters) HasOwnTarget() bool { return c.targetKubeconfig != "" || c.targetContext != "" }

func (c *clusters) targetFlags() *genericclioptions.ConfigFlags {
	if !c.HasOwnTarget() {
		return c.flags
	}
	if c.ofTarget != nil {
		return c.ofTarget
	}
	c.ofTarget = c.otherFlags(&c.targetKubeconfig, &c.targetContext)
	return c.ofTarget
}

// otherFlags returns the flags for another cluster: a kubeconfig, or a context in the kubeconfig of the source
// cluster.
func (c *clusters) otherFlags(kubeconfig, context *string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(c.tune)
	flags.CacheDir, flags.Timeout = c.flags.CacheDir, c.flags.Timeout
	flags.KubeConfig, flags.Context = kubeconfig, context
	if *kubeconfig == "" {
		flags.KubeConfig = c.flags.KubeConfig
	}
	return flags
}

// Namespace returns the namespace of the flag or of the kubeconfig's context.
func (c *clusters) Namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, explainConfig(err)
}

// SetNamespace overrides the namespace of the flag.
func (c *clusters) SetNamespace(namespace string) { *c.flags.Namespace = namespace }

// Kubeconfig returns the merged kubeconfig and the context of the source cluster. The kubeconfig is empty if it
// cannot be read.
func (c *clusters) Kubeconfig() (config *clientcmdapi.Config, context string) {
	raw, err := c.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return &clientcmdapi.Config{}, ""
	}
	if *c.flags.Context != "" {
		return &raw, *c.flags.Context
	}
	return &raw, raw.CurrentContext
}

// errNoCluster is returned if no cluster is configured.
var errNoCluster = errors.New("no cluster is configured: set KUBECONFIG, or use --kubeconfig, --context or --server\n" +
	"(after `make demo`: export KUBECONFIG=$PWD/.run/kubeconfig)")

// explainConfig replaces the error for an empty kubeconfig. It returns other errors unchanged.
func explainConfig(err error) error {
	if !clientcmd.IsEmptyConfig(err) {
		return err
	}
	return noCluster()
}

// noCluster returns errNoCluster. If KUBECONFIG is set, the error includes it, because kubectl ignores a mistyped
// path silently.
func noCluster() error {
	if path := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); path != "" {
		return fmt.Errorf("KUBECONFIG is %s, which does not exist or does not specify a cluster: %w", path, errNoCluster)
	}
	return errNoCluster
}

// kubectlsDefault is the API server that kubectl uses if none is configured.
const kubectlsDefault = "http://localhost:8080"

// restConfig returns the configuration for a cluster. It returns an error if none is configured.
func restConfig(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, explainConfig(err)
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err == nil && config.Host == kubectlsDefault && len(raw.Clusters) == 0 && *flags.APIServer == "" {
		return nil, noCluster()
	}
	return config, nil
}

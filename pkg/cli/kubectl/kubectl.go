// Package kubectl has the clusters of a console named by kubectl's flags, and objects written as kubectl writes them.
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

// Variables that name kubeconfigs: of the target cluster, as for the resource-manager, and of the garden, as for gardenlet.
const (
	targetKubeconfigVariable = "TARGET_KUBECONFIG"
	gardenKubeconfigVariable = "GARDEN_KUBECONFIG"
)

// NewConsole returns a console whose clusters are given by kubectl's flags, or by kubeconfigs.
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

// clusters are named by flags.
type clusters struct {
	flags                           *genericclioptions.ConfigFlags
	targetKubeconfig, targetContext string
	gardenKubeconfig, gardenContext string
	tune                            func(*rest.Config) *rest.Config
	// ofTarget are flags that name the target cluster, made once.
	ofTarget *genericclioptions.ConfigFlags
}

// AddFlags adds kubectl's flags, which are for the source cluster, and those that name the target cluster.
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

// Source returns how the source cluster is reached.
func (c *clusters) Source() (*rest.Config, error) { return restConfig(c.flags) }

// Target returns how the target cluster is reached.
func (c *clusters) Target() (*rest.Config, error) { return restConfig(c.targetFlags()) }

// Garden returns how the garden is reached.
func (c *clusters) Garden() (*rest.Config, error) {
	if !c.HasOwnGarden() {
		return c.Source()
	}
	return restConfig(c.otherFlags(&c.gardenKubeconfig, &c.gardenContext))
}

// HasOwnGarden reports whether the garden is reached in another way than the source cluster.
func (c *clusters) HasOwnGarden() bool { return c.gardenKubeconfig != "" || c.gardenContext != "" }

// TargetMapper knows the names of kinds of the target cluster.
func (c *clusters) TargetMapper() (meta.RESTMapper, error) { return c.targetFlags().ToRESTMapper() }

// HasOwnTarget reports whether the target cluster is reached in another way than the source cluster.
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

// otherFlags returns flags that name another cluster than the source cluster: by a kubeconfig, or by a context in that of the source cluster.
func (c *clusters) otherFlags(kubeconfig, context *string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(c.tune)
	flags.CacheDir, flags.Timeout = c.flags.CacheDir, c.flags.Timeout
	flags.KubeConfig, flags.Context = kubeconfig, context
	if *kubeconfig == "" {
		flags.KubeConfig = c.flags.KubeConfig
	}
	return flags
}

// Namespace returns that of the flag or of the kubeconfig's context.
func (c *clusters) Namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, explainConfig(err)
}

// SetNamespace overrides the flag.
func (c *clusters) SetNamespace(namespace string) { *c.flags.Namespace = namespace }

// Kubeconfig returns what is read of kubeconfigs, nothing if they cannot be read, and the context of the source cluster.
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

// errNoCluster says that nothing names a cluster.
var errNoCluster = errors.New("no cluster is configured: set KUBECONFIG, or use --kubeconfig, --context or --server\n" +
	"(after `make demo`: export KUBECONFIG=$PWD/.run/kubeconfig)")

// explainConfig says what is wrong with a kubeconfig.
func explainConfig(err error) error {
	if !clientcmd.IsEmptyConfig(err) {
		return err
	}
	return noCluster()
}

// noCluster names the variable if that is what names no cluster: a path with a typing error is passed over by kubectl, too.
func noCluster() error {
	if path := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); path != "" {
		return fmt.Errorf("KUBECONFIG is %s, which does not exist or does not specify a cluster: %w", path, errNoCluster)
	}
	return errNoCluster
}

// kubectlsDefault is the API server that kubectl asks if nothing names one.
const kubectlsDefault = "http://localhost:8080"

// restConfig returns how a cluster is reached. That nothing names one is an error.
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

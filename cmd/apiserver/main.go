// Command apiserver serves the API of the garden behind the aggregator of a kube-apiserver.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/trellis-k8s/trellis/pkg/apiserver"
)

// version is set by the linker.
var version = "dev"

func main() {
	logs.InitLogs()
	defer logs.FlushLogs()
	log.SetLogger(klog.Background())
	command, err := newCommand()
	if err == nil {
		err = command.ExecuteContext(signals.SetupSignalHandler())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "apiserver: %v\n", err)
		logs.FlushLogs()
		os.Exit(1) //nolint:gocritic // the logs are flushed
	}
}

func newCommand() (*cobra.Command, error) {
	options, err := apiserver.NewOptions()
	if err != nil {
		return nil, err
	}
	var showVersion bool
	command := &cobra.Command{
		Use:   "apiserver --cluster-identity NAME --etcd-servers URL --kubeconfig FILE",
		Short: "Serve the API of the garden",
		Long: `apiserver serves the groups core, seedmanagement, operations and security.gardener.cloud. It stores objects in
etcd, and asks the kube-apiserver of the garden who a client is and what it may do.`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			if showVersion {
				fmt.Fprintln(command.OutOrStdout(), version)
				return nil
			}
			server, err := options.New(version)
			if err != nil {
				return err
			}
			return server.Run(command.Context())
		},
	}
	options.AddFlags(command.Flags())
	command.Flags().BoolVar(&showVersion, "version", false, "print the version")
	return command, nil
}

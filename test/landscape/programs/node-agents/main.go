// Command node-agents runs on each node of a landscape. It enforces NetworkPolicies, maintains the network of Pods and the
// routes to the Pods of other nodes, and assigns addresses to Services of the type LoadBalancer.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-k8s/trellis/test/landscape/agents"
)

func main() { os.Exit(runMain()) }

func runMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o agents.Options
	flags := flag.NewFlagSet("node-agents", flag.ContinueOnError)
	flags.SetOutput(out)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the cluster; leave it empty in a Pod")
	flags.StringVar(&o.Node, "node", "", "name of this node")
	flags.BoolVar(&o.NetworkPolicies, "network-policies", false, "enforce NetworkPolicies for the Pods of this node")
	flags.StringVar(&o.PodNetwork, "pod-network", "", "directory for the CNI configuration; also enables routes to other nodes")
	flags.TextVar(&o.ClusterPods, "cluster-pods", netip.Prefix{}, "network of all Pods of the cluster")
	flags.TextVar(&o.LoadBalancers, "load-balancers", netip.Prefix{}, "network that Services of the type LoadBalancer get addresses from")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	return agents.Run(ctx, config, o)
}

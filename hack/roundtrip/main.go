// Command roundtrip tests folders of manifests on a real control plane. It applies them with a ManagedResource, compares
// them with the live objects, removes one manifest, deletes all, and searches for remaining objects.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

const usage = `Takes folders of manifests through their whole life on a real control plane of its own.

Each folder becomes one ManagedResource. It is applied, compared with the manifests, applied again without its last
manifest (which must go), and deleted (nothing of it must be left).

Usage:
  go run ./hack/roundtrip [flags] FOLDER...

Examples:
  go run ./hack/roundtrip --brotli ./manifests/argo-cd
  go run ./hack/roundtrip --kill 10 ./manifests/kube-prometheus
  go run ./hack/roundtrip --nodes 3 ./manifests/kube-prometheus

Needs bin/resource-manager (make build) and the control plane's programs (make controlplane).

Flags:
`

type options struct {
	brotli  bool
	kills   int
	nodes   int
	binary  string
	timeout time.Duration
}

func main() { os.Exit(runMain()) }

func runMain() int {
	var opts options
	flag.BoolVar(&opts.brotli, "brotli", false, "compress the manifests with Brotli into one Secret")
	flag.IntVar(&opts.kills, "kill", 0, "rounds in which the resource-manager is killed (SIGKILL) at a random moment of the "+
		"apply and at one of the delete")
	flag.IntVar(&opts.nodes, "nodes", 0, "simulated nodes, on which Pods run; health is then reported after a minute without change")
	flag.StringVar(&opts.binary, "binary", "bin/resource-manager", "the resource-manager to run")
	flag.DurationVar(&opts.timeout, "timeout", 3*time.Minute, "how long one step may take")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, opts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "roundtrip:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, opts options, folders []string) (err error) {
	fmt.Fprintln(os.Stdout, "Starting a control plane (about 15 seconds) …")
	cp, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Scheduler: opts.nodes > 0, Nodes: opts.nodes, Log: os.Stdout,
	})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := cp.Stop(); err == nil {
			err = stopErr
		}
	}()
	cluster, err := newCluster(ctx, cp, opts)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FOLDER\tOBJECTS\tAPPLIED AFTER\tPRUNED AFTER\tDELETED AFTER")
	for _, folder := range folders {
		set, err := readFolder(folder)
		if err != nil {
			return err
		}
		name := strings.ToLower(filepath.Base(filepath.Clean(folder)))
		fmt.Fprintf(os.Stdout, "%s: %d objects\n", name, len(set.objects()))
		times, err := cluster.roundtrip(ctx, name, set)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", name, len(set.objects()), times.applied, times.pruned, times.deleted)
		for round := range opts.kills {
			if err := cluster.killRound(ctx, name, set, times, round+1); err != nil {
				return fmt.Errorf("%s: round %d: %w", name, round+1, err)
			}
		}
	}
	return table.Flush()
}

// Command demo runs Trellis on this machine: a real Kubernetes control plane with simulated nodes, in
// the background, with the programs of a garden and of a Seed next to it. It needs neither containers nor a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const usage = `Runs Trellis on this machine: a real Kubernetes control plane with simulated nodes, in
the background, with the programs of a garden and of a Seed next to it, and shows a tour.

Usage:
  demo up     start, or find what was started before
  demo tour   show how manifests are delivered, and how a cluster is created
  demo down   stop everything and remove its files

Flags:
  --control-plane-only   up starts none of the programs, and installs no CRDs
  --dir                  where all files are kept (default: .run in the repository)`

func main() { os.Exit(runMain()) }

func runMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // errors are returned, and the programs have their own logs

	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, out io.Writer) error {
	d := &demo{out: out}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned
	flags.Usage = func() { d.say("%s", usage) }
	flags.BoolVar(&d.controlPlaneOnly, "control-plane-only", false, "")
	flags.StringVar(&d.dir, "dir", "", "")

	command := "--help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	if command == "help" || command[0] == '-' {
		return flags.Parse([]string{"--help"})
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := d.complete(); err != nil {
		return err
	}
	switch command {
	case "up":
		return d.up(ctx)
	case "tour":
		return d.tour(ctx)
	case "down":
		return d.down(ctx)
	case serveCommand: // what up starts in the background
		return d.serve(ctx, os.NewFile(progressDescriptor, "progress"))
	default:
		return fmt.Errorf("unknown command %q, see `demo --help`", command)
	}
}

func (d *demo) tour(ctx context.Context) error {
	if _, running, err := d.running(); err != nil {
		return err
	} else if !running {
		return errors.New("the demo is not running, start it with `make demo`")
	}
	config, err := clientcmd.BuildConfigFromFlags("", d.path("kubeconfig"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the demo: %w", err)
	}
	return tour(ctx, config, d.kubectl(), d.out)
}

// kubectl is that of the tour.
func (d *demo) kubectl() kubectl {
	return kubectl{program: d.program("kubectl"), kubeconfig: d.path("kubeconfig"), cache: d.path("kubectl-cache")}
}

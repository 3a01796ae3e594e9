// Command landscape runs a real Kubernetes cluster on this machine, for development and tests: docs/landscape.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/landscape"
	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

func main() { os.Exit(runMain()) }

func runMain() int {
	// In processes of a machine, the program runs only these commands.
	if len(os.Args) == 3 && (os.Args[1] == machine.LaunchCommand || os.Args[1] == machine.InitCommand) {
		run := map[string]func(string) error{machine.LaunchCommand: machine.Launch, machine.InitCommand: machine.Init}[os.Args[1]]
		return exitCode(run(os.Args[2]))
	}
	log.SetLogger(logr.Discard()) // errors are returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	if ctx.Err() != nil {
		err = errors.New("interrupted: run `make base-cluster-down` to remove what was started")
	}
	return exitCode(err)
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func command() *cobra.Command {
	o := landscape.Options{}
	root := &cobra.Command{
		Use: "landscape", Short: "Run a real Kubernetes cluster on this machine", SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			o.Out = c.OutOrStdout()
			var err error
			if c.Name() == registryCommand {
				return nil
			}
			if o.Root, err = controlplane.RepositoryRoot(); err != nil {
				return err
			}
			if o.Directory == "" {
				o.Directory = filepath.Join(o.Root, ".run", "landscape")
			}
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.Directory, "directory", "",
		"directory for all files of the landscape (default: .run/landscape in the repository)")
	flags.StringVar(&o.Block, "block", "",
		"IPv4 network of the landscape, 16 bits, for example 10.99.0.0/16 (default: the first free one)")
	flags.BoolVar(&o.Distribution, "distribution", false,
		"use containerd, runc and CNI plugins from Debian packages instead of building them")
	flags.BoolVar(&o.InstallPackages, "install-packages", false, "install missing Debian packages")
	root.AddCommand(up(&o), fleetUp(&o), gardenUp(&o), down(&o), status(&o), push(&o), buildOnly(&o), check(&o), machineImage(&o), registry())
	return root
}

func up(o *landscape.Options) *cobra.Command {
	return &cobra.Command{Use: "up", Short: "Build missing programs, and start the base cluster", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := landscape.New(*o)
			if err != nil {
				return err
			}
			if err := l.Up(c.Context()); err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "\n  export KUBECONFIG=%s\n  bin/kubectl get pods --all-namespaces\n\n"+
				"Logs are in %s. Remove it with: make base-cluster-down\n",
				l.Kubeconfig(), filepath.Join(l.Directory, "logs"))
			return nil
		}}
}

func down(o *landscape.Options) *cobra.Command {
	return &cobra.Command{Use: "down", Short: "Remove the base cluster, and everything that runs on it", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := landscape.New(*o)
			if err != nil {
				return err
			}
			if err := l.Down(c.Context()); err != nil {
				return err
			}
			fmt.Fprintln(o.Out, "Removed the base cluster.")
			return nil
		}}
}

func status(o *landscape.Options) *cobra.Command {
	return &cobra.Command{Use: "status", Short: "Show the processes of the base cluster, and their memory", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := landscape.New(*o)
			if err != nil {
				return err
			}
			return l.Status()
		}}
}

func push(o *landscape.Options) *cobra.Command {
	return &cobra.Command{Use: "push IMAGE", Short: "Build an image again, and roll it out in the base cluster", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := landscape.New(*o)
			if err != nil {
				return err
			}
			reference, err := l.Push(c.Context(), args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(o.Out, reference)
			return l.RollOut(c.Context(), args[0], reference)
		}}
}

func buildOnly(o *landscape.Options) *cobra.Command {
	return &cobra.Command{Use: "build", Short: "Build missing programs", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		l, err := landscape.New(*o)
		if err != nil {
			return err
		}
		if err := l.Preflight(c.Context()); err != nil {
			return err
		}
		return l.Build(c.Context())
	}}
}

func check(o *landscape.Options) *cobra.Command {
	return &cobra.Command{Use: "check", Short: "Check that this machine has what a landscape needs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := landscape.New(*o)
			if err != nil {
				return err
			}
			if err := l.Preflight(c.Context()); err != nil {
				return err
			}
			fmt.Fprintln(o.Out, "This machine has what a landscape needs.")
			return nil
		}}
}

func machineImage(o *landscape.Options) *cobra.Command {
	export := ""
	c := &cobra.Command{Use: "machine-image", Short: "Build the image of machines and the images that run on them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := landscape.New(*o)
			if err != nil {
				return err
			}
			if err := l.Preflight(c.Context()); err != nil {
				return err
			}
			if err := errors.Join(l.Build(c.Context()), l.MachineImages(c.Context())); err != nil || export == "" {
				return err
			}
			return l.ExportMachine(export)
		}}
	c.Flags().StringVar(&export, "export", "", "also write the root file system of machines to this file, as a compressed archive")
	return c
}

const registryCommand = "registry"

// registry returns the command for a process of the base cluster.
func registry() *cobra.Command {
	var images, listen string
	c := &cobra.Command{Use: registryCommand, Hidden: true, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return landscape.ServeImages(c.Context(), images, listen, c.OutOrStdout())
	}}
	c.Flags().StringVar(&images, "images", "", "directory of the images")
	c.Flags().StringVar(&listen, "listen", "", "address to serve on")
	return c
}

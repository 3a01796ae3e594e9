// Package app is the program gardener-node-agent, apart from its function main.
package app

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/apis/nodeagent/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/agent"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/bootstrap"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/config"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/pkg/program"
)

// memoryTarget is the heap size in bytes from which garbage is collected more often.
const memoryTarget = 20 << 20

// Program identifies the program: tests build it from the path of the package of this type.
type Program struct{}

// Main runs the program with its command line, and exits if there is an error. linked is the version to report.
func Main(linked string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetMemoryLimit(memoryTarget)
	program.Execute(ctx, newCommand(linked))
}

// flags are where the configuration is.
type flags struct{ file, directory, version string }

// load reads the configuration.
func (f *flags) load() (*v1alpha1.NodeAgentConfiguration, error) {
	file := f.file
	if file == "" {
		var err error
		if file, err = config.Find(f.directory, f.version); err != nil {
			return nil, err
		}
	}
	return config.Load(file)
}

// args returns the flags for another program of this machine.
func (f *flags) args() []string {
	if f.file != "" {
		return []string{"--config=" + f.file}
	}
	return []string{"--config-dir=" + f.directory}
}

func newCommand(version string) *cobra.Command {
	f := &flags{version: version}
	root := &cobra.Command{
		Use: "gardener-node-agent", Short: "Apply the configuration of a node", Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		Long: `gardener-node-agent runs on the machines of a cluster. It makes them what the OperatingSystemConfig of their worker pool asks for, and reports
on their Node.`,
		Example: `  # as the systemd unit runs it
  gardener-node-agent --config-dir=` + paths.Base,
	}
	printed := program.VersionFlag(root, version)
	root.PersistentFlags().StringVar(&f.file, "config", "", "path of the configuration file")
	root.PersistentFlags().StringVar(&f.directory, "config-dir", paths.Base,
		"directory of the configuration file: config-<version>.yaml for this version, or else config.yaml")
	root.RunE = func(command *cobra.Command, _ []string) error {
		if printed() {
			return nil
		}
		return run(command.Context(), f)
	}
	for _, each := range []struct {
		name, short string
		run         func(context.Context, *flags) error
	}{
		{"bootstrap", "Install the node agent on a new machine as a systemd service", install},
		{"check", "Check that this program can run on this machine; it changes nothing", check},
		{"reset", "Remove what the node agent has put on this machine", reset},
	} {
		root.AddCommand(&cobra.Command{
			Use: each.name, Short: each.short, Args: cobra.NoArgs,
			RunE: func(command *cobra.Command, _ []string) error { return each.run(command.Context(), f) },
		})
	}
	return root
}

// options returns the real machine.
func options(f *flags) (agent.Options, error) {
	settings, err := f.load()
	if err != nil {
		return agent.Options{}, err
	}
	files, commands := host.Files{Root: "/"}, host.Exec{}
	log := newLog(os.Stderr, settings)
	klog.SetLogger(log)
	return agent.Options{
		Load: f.load, Files: files, Systemd: host.DBus{}, Commands: commands, Images: host.Containerd{Files: files, Commands: commands},
		Hostname: os.Hostname, Check: agent.CheckProgram(commands, f.args()...), KubeletHealth: paths.KubeletHealth,
		Clock: clock.RealClock{}, Log: log,
	}, nil
}

// run runs the node agent.
func run(ctx context.Context, f *flags) error {
	o, err := options(f)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	o.Metrics = agent.NewMetrics(registry)
	settings, err := o.Load()
	if err != nil {
		return err
	}
	o.Log.Info("Starts", "version", f.version)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, 1)
	go func() {
		err := serve(ctx, settings, registry, o.Metrics.Ready)
		served <- err
		cancel(err)
	}()
	err = agent.Run(ctx, o)
	cancel(nil)
	if errors.Is(err, apply.ErrRestart) {
		o.Log.Info("Ends, so that systemd starts it again", "reason", err.Error())
		err = nil
	}
	return errors.Join(err, <-served)
}

func check(ctx context.Context, f *flags) error {
	o, err := options(f)
	if err != nil {
		return err
	}
	return agent.Check(ctx, o)
}

// install installs the node agent as a systemd service.
func install(ctx context.Context, f *flags) error {
	o, err := options(f)
	if err != nil {
		return err
	}
	settings, err := o.Load()
	if err != nil {
		return err
	}
	return bootstrap.Install(ctx, machine(o), settings)
}

func reset(ctx context.Context, f *flags) error {
	o, err := options(f)
	if err != nil {
		return err
	}
	return bootstrap.Reset(ctx, machine(o), &apply.Applier{
		Files: o.Files, Systemd: o.Systemd, Images: o.Images, Commands: o.Commands, Check: o.Check, Log: o.Log,
	})
}

func machine(o agent.Options) bootstrap.Machine {
	return bootstrap.Machine{Files: o.Files, Systemd: o.Systemd, Commands: o.Commands, Log: o.Log}
}

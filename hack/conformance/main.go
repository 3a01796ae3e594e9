// Command conformance runs Kubernetes' own conformance tests against a Shoot with nodes, the base cluster of a landscape, or any cluster with
// a kubeconfig: docs/conformance.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

func main() {
	log.SetLogger(logr.Discard()) // errors are returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Names of clusters.
const (
	shootCluster = "shoot"
	baseCluster  = "base"
	otherCluster = "other"
)

// options are the flags of the command.
type options struct {
	root, directory    string
	cluster            string
	kubeconfig         string
	kubectl            string
	repositories       string
	focus              string
	parallel, size     int
	timeout            time.Duration
	again, failed      bool
	retry, keep, build bool
	output             string
	block              string
	distribution       bool
	installPackages    bool
}

func command() *cobra.Command {
	o := options{}
	c := &cobra.Command{
		Use: "conformance", Short: "Run Kubernetes' conformance tests", SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		Long: "Run Kubernetes' conformance tests against a Shoot with two nodes, the base cluster of a landscape, or any cluster.\n\n" +
			"A run that ended early is continued: tests that have a result are not repeated.",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.cluster, "cluster", shootCluster, "cluster of a landscape: shoot or base. The landscape is started if it does not run, and then removed at the end")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of an administrator of another cluster")
	flags.StringVar(&o.kubectl, "kubectl", "", "path of kubectl (default: bin/kubectl)")
	flags.StringVar(&o.repositories, "repositories", "", "with --kubeconfig: file with the registries of images, as for e2e.test --kube-test-repo-list")
	flags.StringVar(&o.focus, "focus", "", "regular expression that selects tests by name")
	flags.IntVar(&o.parallel, "parallel", 4, "number of processes that run tests at the same time; serial tests run one at a time afterwards")
	flags.IntVar(&o.size, "shard-size", 8, "number of tests of a process")
	flags.DurationVar(&o.timeout, "timeout", 3*time.Hour, "limit for the tests. Interrupted tests have no result")
	flags.BoolVar(&o.again, "again", false, "discard the results of the last run")
	flags.BoolVar(&o.failed, "failed", false, "also repeat tests that failed in the last run")
	flags.BoolVar(&o.retry, "retry", true, "repeat tests that failed once, one at a time")
	flags.BoolVar(&o.keep, "keep", false, "do not remove the landscape")
	flags.BoolVar(&o.build, "build", false, "only build programs and images")
	flags.StringVarP(&o.output, "output", "o", "table", "format of the report: table or json")
	flags.StringVar(&o.directory, "directory", "", "directory for results and logs (default: .run/conformance/<cluster> in the repository)")
	flags.StringVar(&o.block, "block", "", "IPv4 network of the landscape, 16 bits")
	flags.BoolVar(&o.distribution, "distribution", false, "landscape with Debian's containerd, runc and CNI plugins")
	flags.BoolVar(&o.installPackages, "install-packages", false, "install missing Debian packages")
	return c
}

// complete checks the options and sets defaults.
func (o *options) complete() error {
	var err error
	if o.root, err = controlplane.RepositoryRoot(); err != nil {
		return err
	}
	if o.kubeconfig != "" {
		o.cluster = otherCluster
		if o.kubeconfig, err = filepath.Abs(o.kubeconfig); err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
	} else if o.cluster != shootCluster && o.cluster != baseCluster {
		return fmt.Errorf("--cluster %q: use %s or %s, or --kubeconfig for another cluster", o.cluster, shootCluster, baseCluster)
	}
	if o.parallel < 1 || o.size < 1 {
		return errors.New("--parallel and --shard-size must be at least 1")
	}
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("-o %q: use table or json", o.output)
	}
	if o.directory == "" {
		o.directory = filepath.Join(o.root, ".run", "conformance", o.cluster)
	}
	if o.directory, err = filepath.Abs(o.directory); err != nil {
		return fmt.Errorf("--directory: %w", err)
	}
	if o.kubectl == "" {
		o.kubectl = filepath.Join(o.root, "bin", "kubectl")
	}
	if o.repositories != "" {
		if o.repositories, err = filepath.Abs(o.repositories); err != nil {
			return fmt.Errorf("--repositories: %w", err)
		}
	}
	return os.MkdirAll(o.directory, 0o750)
}

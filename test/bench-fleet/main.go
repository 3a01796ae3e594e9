// Command bench-fleet measures the example flow, and the resource-manager it uses, with a fleet of owners.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

const usage = `Measures the example flow with a fleet of sites. The resource-manager and the flow run as processes on a real control plane.
See docs/bench-fleet.md.

Usage:
  bin/bench-fleet [flags]

Examples:
  bin/bench-fleet
  bin/bench-fleet --owners 50 --rest 1m
  bin/bench-fleet -o markdown --json bench-fleet.json

Needs bin/resource-manager (make build), bin/sites and the control plane's programs (make controlplane).

Flags:
`

type options struct {
	Owners  int           `json:"owners"`
	Bundles int           `json:"bundles"`
	Rest    time.Duration `json:"rest"`
	Budget  int           `json:"budget"`
	Retry   time.Duration `json:"retry"`
	Workers int           `json:"workers"`
	Timeout time.Duration `json:"timeout"`
	Binary  string        `json:"binary"`
	Sites   string        `json:"sites"`
	JSON    string        `json:"-"`
	Output  string        `json:"-"`
	Profile string        `json:"profile,omitempty"`
	Keep    bool          `json:"-"`
}

func main() { os.Exit(measure.Main("bench-fleet", parseOptions, run)) }

func parseOptions(args []string, out io.Writer) (options, error) {
	var opts options
	flags := measure.NewFlags("bench-fleet", usage, out, &opts.Output)
	flags.IntVar(&opts.Owners, "owners", 1000, "number of sites, each in its own namespace")
	flags.IntVar(&opts.Bundles, "bundles", 12, "bundles of each site: network, settings and apps")
	flags.DurationVar(&opts.Rest, "rest", 10*time.Minute, "how long both processes are observed at rest")
	flags.IntVar(&opts.Budget, "budget", 100, "maximum number of ManagedResources that roll out at the same time "+
		"if only the flow's program has changed")
	flags.DurationVar(&opts.Retry, "retry", 5*time.Second, "time after which a site that waits for its rollout is retried")
	flags.IntVar(&opts.Workers, "workers", 5, "concurrent workers of the resource-manager and of the flow")
	flags.DurationVar(&opts.Timeout, "timeout", 45*time.Minute, "time limit of each phase")
	flags.StringVar(&opts.Binary, "binary", "bin/resource-manager", "the resource-manager")
	flags.StringVar(&opts.Sites, "sites", "bin/sites", "the program of the example flow")
	flags.StringVar(&opts.Profile, "profile", "", "`directory` for heap profiles of the flow")
	flags.StringVar(&opts.JSON, "json", "", "`file` to write all figures to")
	flags.BoolVar(&opts.Keep, "keep", false, "keep the logs and the audit log")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	return opts, opts.validate()
}

// A site has a network, settings, and from 1 to 20 apps.
const (
	leastBundles = 3
	mostBundles  = 22
)

func (o options) validate() error {
	switch {
	case min(o.Workers, o.Budget) < 1 || o.Owners < 2:
		return errors.New("--workers and --budget must be at least 1, and --owners at least 2")
	case o.Bundles < leastBundles || o.Bundles > mostBundles:
		return fmt.Errorf("--bundles must be from %d to %d", leastBundles, mostBundles)
	}
	return nil
}

// first is the number of sites that are created first. The memory for each site is computed from the further
// sites, so that it excludes the memory that the program needs without a site.
func (o options) first() int { return max(1, o.Owners/5) }

// managedResources returns the number of ManagedResources.
func (o options) managedResources() int { return o.Owners * o.Bundles }

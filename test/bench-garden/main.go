// Command bench-garden measures the controller-manager and the scheduler in a garden with many Seeds, Projects and Shoots.
package main

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

const usage = `Measures the controller-manager and the scheduler in a garden with many Seeds, Projects and Shoots: the time until all
are ready and scheduled, the requests at rest and after a restart, and the memory. See docs/controllers.md.

Usage:
  bin/bench-garden [flags]

Examples:
  bin/bench-garden
  bin/bench-garden --shoots 100 --projects 10 --seeds 5 --rest 1m
  bin/bench-garden --shoots 10000 --seeds 200 --qps 10000 --rest 1s
  bin/bench-garden -o markdown

Needs the control plane's programs (make controlplane) and those of this project (make build).

Flags:
`

type options struct {
	Shoots   int           `json:"shoots"`
	Projects int           `json:"projects"`
	Seeds    int           `json:"seeds"`
	QPS      float64       `json:"qps"`
	Rest     time.Duration `json:"rest"`
	Timeout  time.Duration `json:"timeout"`
	Programs string        `json:"programs"`
	Output   string        `json:"-"`
}

func main() { os.Exit(measure.Main("bench-garden", parseOptions, run)) }

func parseOptions(args []string, out io.Writer) (options, error) {
	var opts options
	flags := measure.NewFlags("bench-garden", usage, out, &opts.Output)
	flags.IntVar(&opts.Shoots, "shoots", 1000, "number of Shoots")
	flags.IntVar(&opts.Projects, "projects", 100, "number of Projects")
	flags.IntVar(&opts.Seeds, "seeds", 50, "number of Seeds, whose gardenlets are simulated")
	flags.Float64Var(&opts.QPS, "qps", 50, "requests that the scheduler may send in a second (clientConnection.qps)")
	flags.DurationVar(&opts.Rest, "rest", 10*time.Minute, "time during which the requests at rest are counted")
	flags.DurationVar(&opts.Timeout, "timeout", time.Hour, "time limit of the run")
	flags.StringVar(&opts.Programs, "programs", "bin", "directory with apiserver, controller-manager and scheduler")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if min(opts.Shoots, opts.Projects, opts.Seeds) < 1 || opts.Rest <= 0 || opts.QPS <= 0 {
		return opts, errors.New("--shoots, --projects and --seeds must be at least 1, and --rest and --qps greater than 0")
	}
	return opts, nil
}

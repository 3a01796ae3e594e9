// Command bench-gardenlet measures gardenlet on a Seed with many Shoots.
package main

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

const usage = `Measures gardenlet on a Seed with few and with many Shoots: the time until all are created and until a change of one is
written, the requests at rest and after a restart, CPU time and memory for each Shoot. See docs/gardenlet.md.

All Shoots are behind one gateway of the Gateway API. The garden and the Seed are real API servers. The Seed's resource-manager and the API servers of Shoots are simulated.

Usage:
  bin/bench-gardenlet [flags]

Examples:
  bin/bench-gardenlet
  bin/bench-gardenlet --shoots 100 --rest 1m
  bin/bench-gardenlet --shoots 100 --profile profiles
  bin/bench-gardenlet -o markdown

Needs the control plane's programs (make controlplane) and those of this project (make build).

Flags:
`

type options struct {
	Shoots   int           `json:"shoots"`
	Few      int           `json:"few"`
	Changes  int           `json:"changes"`
	Rest     time.Duration `json:"rest"`
	Timeout  time.Duration `json:"timeout"`
	Programs string        `json:"programs"`
	Profile  string        `json:"profile"`
	Output   string        `json:"-"`
}

func main() { os.Exit(measure.Main("bench-gardenlet", parseOptions, run)) }

func parseOptions(args []string, out io.Writer) (options, error) {
	var opts options
	flags := measure.NewFlags("bench-gardenlet", usage, out, &opts.Output)
	flags.IntVar(&opts.Shoots, "shoots", 1000, "number of Shoots, without workers")
	flags.IntVar(&opts.Few, "few", 10, "number of Shoots with which the many are compared")
	flags.IntVar(&opts.Changes, "changes", 10, "number of Shoots that are changed one after the other")
	flags.DurationVar(&opts.Rest, "rest", 5*time.Minute, "time during which the requests at rest are counted, with few and with many Shoots")
	flags.DurationVar(&opts.Timeout, "timeout", 2*time.Hour, "time limit of the run")
	flags.StringVar(&opts.Programs, "programs", "bin", "directory with apiserver, controller-manager and gardenlet")
	flags.StringVar(&opts.Profile, "profile", "", "`directory` for CPU and memory profiles of gardenlet")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if opts.Few < 1 || opts.Shoots <= opts.Few || opts.Changes < 1 || opts.Changes > opts.Few || opts.Rest <= 0 {
		return opts, errors.New("--few must be at least 1, --shoots greater than --few, --changes between 1 and --few, and --rest greater than 0")
	}
	return opts, nil
}

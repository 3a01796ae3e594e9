// Command bench-api compares the garden's API server with a CustomResourceDefinition that has the same objects.
package main

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

const usage = `Compares the garden's API server with Shoots and a CustomResourceDefinition with the same objects in the kube-apiserver
in front of it. The two are measured alternately. See docs/bench-api.md.

Usage:
  bin/bench-api [flags]

Examples:
  bin/bench-api
  bin/bench-api --shoots 500 --memory=false
  bin/bench-api -o json > bench-api.json

Needs the control plane's programs (make controlplane).

Flags:
`

type options struct {
	Shoots   int           `json:"shoots"`
	Writers  int           `json:"writers"`
	Watchers int           `json:"watchers"`
	Changes  int           `json:"changes"`
	Turns    int           `json:"turns"`
	Memory   bool          `json:"memory"`
	Timeout  time.Duration `json:"timeout"`
	Binary   string        `json:"binary"`
	Profile  string        `json:"profile,omitempty"`
	Output   string        `json:"-"`
}

func main() { os.Exit(measure.Main("bench-api", parseOptions, run)) }

func parseOptions(args []string, out io.Writer) (options, error) {
	var opts options
	flags := measure.NewFlags("bench-api", usage, out, &opts.Output)
	flags.IntVar(&opts.Shoots, "shoots", 10000, "number of Shoots, and of objects of the CustomResourceDefinition")
	flags.IntVar(&opts.Writers, "writers", 32, "number of concurrent writers in the figures of many writers")
	flags.IntVar(&opts.Watchers, "watchers", 100, "number of watchers, each with its own connection")
	flags.IntVar(&opts.Changes, "changes", 100, "number of changes that each watcher waits for, in each turn")
	flags.IntVar(&opts.Turns, "turns", 10, "number of times that each of the two is measured, alternately")
	flags.BoolVar(&opts.Memory, "memory", true, "measure the memory, each with its own control plane")
	flags.DurationVar(&opts.Timeout, "timeout", 30*time.Minute, "time limit of the run")
	flags.StringVar(&opts.Binary, "binary", "", "the API server to measure (default: built from this repository)")
	flags.StringVar(&opts.Profile, "profile", "", "`directory` for a CPU profile of each server and phase; "+
		"do not publish the figures of such a run")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	return opts, opts.validate()
}

func (o options) validate() error {
	if min(o.Writers, o.Watchers, o.Changes, o.Turns) < 1 {
		return errors.New("--writers, --watchers, --changes and --turns must be at least 1")
	}
	if o.Shoots < 2*o.Turns || o.Shoots < o.Changes {
		return errors.New("--shoots must be at least --changes and twice --turns")
	}
	return nil
}

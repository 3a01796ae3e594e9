// Command bench-gateway measures the gateway of the Gateway API with the routes of many simulated Shoots.
package main

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

const usage = `Measures the gateway with the routes of few and of many simulated Shoots: the time until a new host answers, the
time until a connection answers, and the memory for each route and for each connection. See docs/exposure.md.

Usage:
  bin/bench-gateway [flags]

Examples:
  bin/bench-gateway
  bin/bench-gateway --shoots 100 --hosts 10
  bin/bench-gateway -o markdown

Needs the control plane's programs (make controlplane) and the gateway (make build).

Flags:
`

type options struct {
	Shoots      int           `json:"shoots"`
	Few         int           `json:"few"`
	Hosts       int           `json:"hosts"`
	Connections int           `json:"connections"`
	Timeout     time.Duration `json:"timeout"`
	Binary      string        `json:"binary"`
	Output      string        `json:"-"`
}

func main() { os.Exit(measure.Main("bench-gateway", parseOptions, run)) }

func parseOptions(args []string, out io.Writer) (options, error) {
	var opts options
	flags := measure.NewFlags("bench-gateway", usage, out, &opts.Output)
	flags.IntVar(&opts.Shoots, "shoots", 1000, "number of simulated Shoots")
	flags.IntVar(&opts.Few, "few", 10, "number of simulated Shoots with which the many are compared")
	flags.IntVar(&opts.Hosts, "hosts", 50, "number of new hosts, and of connections, that are measured one after the other")
	flags.IntVar(&opts.Connections, "connections", 1000, "number of connections whose memory is measured")
	flags.DurationVar(&opts.Timeout, "timeout", 30*time.Minute, "time limit of the run")
	flags.StringVar(&opts.Binary, "binary", "bin/gateway", "the gateway to measure")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if min(opts.Few, opts.Hosts, opts.Connections) < 1 || opts.Shoots <= opts.Few {
		return opts, errors.New("--few, --hosts and --connections must be at least 1, and --shoots greater than --few")
	}
	return opts, nil
}

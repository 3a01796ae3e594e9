// Command bench measures the resource-manager on its own real control plane and compares it with a bare client.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

const usage = `Measures the resource-manager on its own real control plane and compares it with a bare client that sends
the minimal requests of such a reconciler. See docs/performance.md.

Usage:
  bin/bench [flags]

Examples:
  bin/bench --json bench.json
  bin/bench --managed-resources 3000 --base bench.json
  bin/bench --phases limit,create,update --profile profiles
  bin/bench --sets manifests/shop,manifests/bank --against /tmp/resource-manager --rounds 3

Needs bin/resource-manager (make build) and the control plane's programs (make controlplane).

Flags:
`

// The phases that can be selected. Objects are always created.
const (
	phaseLimit   = "limit"
	phaseCreate  = "create"
	phaseUpdate  = "update"
	phaseRestart = "restart"
	phaseRest    = "rest"
	phaseDrift   = "drift"
	phaseDelete  = "delete"
)

var allPhases = []string{phaseLimit, phaseCreate, phaseUpdate, phaseRestart, phaseRest, phaseDrift, phaseDelete}

type options struct {
	ManagedResources int           `json:"managedResources"`
	Objects          int           `json:"objects"`
	Namespaces       int           `json:"namespaces"`
	Workers          int           `json:"workers"`
	SyncPeriod       time.Duration `json:"syncPeriod"`
	Rest             time.Duration `json:"rest"`
	Drift            int           `json:"drift"`
	DriftTimeout     time.Duration `json:"driftTimeout"`
	Seed             uint64        `json:"seed"`
	Phases           []string      `json:"phases"`
	Timeout          time.Duration `json:"timeout"`
	Binary           string        `json:"binary"`
	Profile          string        `json:"profile"`
	JSON             string        `json:"json"`
	Base             string        `json:"base"`
	Output           string        `json:"output"`
	Keep             bool          `json:"keep"`
	// Sets are directories of manifests. Each is measured as one ManagedResource, instead of all other phases.
	Sets []string `json:"sets,omitempty"`
	// Against are further programs to measure the sets with, in addition to Binary.
	Against []string `json:"against,omitempty"`
	Rounds  int      `json:"rounds,omitempty"`
	// Turns is the number of times that creating and updating are measured between two limits.
	Turns int `json:"turns"`
}

func main() { os.Exit(measure.Main("bench", parseOptions, run)) }

func parseOptions(args []string, out io.Writer) (options, error) {
	var opts options
	var phases, sets, against string
	flags := measure.NewFlags("bench", usage, out, &opts.Output)
	flags.IntVar(&opts.ManagedResources, "managed-resources", 300, "number of ManagedResources")
	flags.IntVar(&opts.Objects, "objects", 10, "objects of each ManagedResource")
	flags.IntVar(&opts.Turns, "turns", 3, "number of times that creating and updating are measured, alternating with the limit; "+
		"up to seven while turns disagree")
	flags.IntVar(&opts.Namespaces, "namespaces", 10, "number of namespaces of the ManagedResources")
	flags.IntVar(&opts.Workers, "workers", 5, "concurrentSyncs of the resource-manager")
	flags.DurationVar(&opts.SyncPeriod, "sync-period", time.Minute, "syncPeriod of the resource-manager")
	flags.DurationVar(&opts.Rest, "rest", 130*time.Second, "how long the resource-manager is observed at rest")
	flags.IntVar(&opts.Drift, "drift", 200, "number of ConfigMaps to change, at most all")
	flags.DurationVar(&opts.DriftTimeout, "drift-timeout", 2*time.Minute, "time limit for correcting them")
	flags.Uint64Var(&opts.Seed, "seed", 1, "seed of the choice of these ConfigMaps")
	flags.StringVar(&phases, "phases", strings.Join(allPhases, ","), "phases to measure")
	flags.DurationVar(&opts.Timeout, "timeout", 30*time.Minute, "time limit of each phase")
	flags.StringVar(&opts.Binary, "binary", "bin/resource-manager", "the resource-manager to measure")
	flags.StringVar(&opts.Profile, "profile", "", "`directory` for CPU and memory profiles of the resource-manager; profiling "+
		"takes time, so do not publish the figures of such a run")
	flags.StringVar(&opts.JSON, "json", "", "`file` to write all figures to")
	flags.StringVar(&opts.Base, "base", "", "JSON `file` of a run with fewer objects, to compute the growth of memory from")
	flags.BoolVar(&opts.Keep, "keep", false, "keep the logs and the audit log")
	flags.StringVar(&sets, "sets", "", "`directories` of manifests, separated by commas: measures only how long it takes to apply "+
		"one ManagedResource with all manifests of a directory, to remove a fifth of them, and to delete it")
	flags.StringVar(&against, "against", "", "`programs` to measure the sets with in turn, before --binary")
	flags.IntVar(&opts.Rounds, "rounds", 1, "number of times that every set is measured")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.Phases, opts.Sets, opts.Against = strings.Split(phases, ","), listOf(sets), listOf(against)
	return opts, opts.validate()
}

func (o options) validate() error {
	for _, phase := range o.Phases {
		if !slices.Contains(allPhases, phase) {
			return fmt.Errorf("--phases: unknown phase %q, use some of %s", phase, strings.Join(allPhases, ", "))
		}
	}
	if min(o.ManagedResources, o.Objects, o.Namespaces, o.Workers, o.Rounds, o.Turns) < 1 {
		return errors.New("--managed-resources, --objects, --namespaces, --workers, --rounds and --turns must be at least 1")
	}
	return nil
}

func listOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// binaries are the programs that sets are measured with. The program to compare with is the first one.
func (o options) binaries() []string { return append(slices.Clone(o.Against), o.Binary) }

func (o options) wants(phases ...string) bool {
	return slices.ContainsFunc(phases, func(phase string) bool { return slices.Contains(o.Phases, phase) })
}

// turns is the number of times that creating and updating are measured: once if there is no limit to compare with.
func (o options) turns() int {
	if !o.wants(phaseLimit) {
		return 1
	}
	return o.Turns
}

func (o options) total() int { return o.ManagedResources * o.Objects }

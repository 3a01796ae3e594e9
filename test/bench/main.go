// Command bench measures the resource-manager on a real control plane of its own, against what a bare client reaches.
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

const usage = `Measures the resource-manager on a real control plane of its own, against what a bare client reaches that sends the
least that such a reconciler has to send. See docs/performance.md.

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

// The phases that can be chosen. Objects are always created.
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
	// Sets are directories of manifests, each of which is measured as one ManagedResource instead of everything else.
	Sets []string `json:"sets,omitempty"`
	// Against are the programs that the sets are measured with, beside Binary.
	Against []string `json:"against,omitempty"`
	Rounds  int      `json:"rounds,omitempty"`
	// Turns is how often creating and updating are measured between two limits.
	Turns int `json:"turns"`
}

func main() { os.Exit(measure.Main("bench", parseOptions, run)) }

func parseOptions(args []string, out io.Writer) (options, error) {
	var opts options
	var phases, sets, against string
	flags := measure.NewFlags("bench", usage, out, &opts.Output)
	flags.IntVar(&opts.ManagedResources, "managed-resources", 300, "number of ManagedResources")
	flags.IntVar(&opts.Objects, "objects", 10, "objects of each ManagedResource")
	flags.IntVar(&opts.Turns, "turns", 3, "how often creating and updating are measured, by turns with the limit; up to seven times while turns disagree")
	flags.IntVar(&opts.Namespaces, "namespaces", 10, "namespaces over which they are spread")
	flags.IntVar(&opts.Workers, "workers", 5, "concurrentSyncs of the resource-manager")
	flags.DurationVar(&opts.SyncPeriod, "sync-period", time.Minute, "syncPeriod of the resource-manager")
	flags.DurationVar(&opts.Rest, "rest", 130*time.Second, "how long the resource-manager is watched at rest")
	flags.IntVar(&opts.Drift, "drift", 200, "ConfigMaps that are changed, at most as many as there are")
	flags.DurationVar(&opts.DriftTimeout, "drift-timeout", 2*time.Minute, "how long they are waited for")
	flags.Uint64Var(&opts.Seed, "seed", 1, "chooses the ConfigMaps that are changed")
	flags.StringVar(&phases, "phases", strings.Join(allPhases, ","), "what is measured")
	flags.DurationVar(&opts.Timeout, "timeout", 30*time.Minute, "how long one phase may take")
	flags.StringVar(&opts.Binary, "binary", "bin/resource-manager", "the resource-manager to measure")
	flags.StringVar(&opts.Profile, "profile", "", "`directory` for CPU and memory profiles of the resource-manager; profiling "+
		"costs, so the figures of such a run are not for the record")
	flags.StringVar(&opts.JSON, "json", "", "`file` to write all figures into")
	flags.StringVar(&opts.Base, "base", "", "JSON `file` of a run with fewer objects, from which the growth of memory is counted")
	flags.BoolVar(&opts.Keep, "keep", false, "leave logs and audit log behind")
	flags.StringVar(&sets, "sets", "", "`directories` of manifests, with commas between them: measures how long one ManagedResource with all of a directory "+
		"takes to be applied, to lose a fifth, and to be deleted, and nothing else")
	flags.StringVar(&against, "against", "", "`programs` to measure the sets with by turns, before --binary")
	flags.IntVar(&opts.Rounds, "rounds", 1, "how often every set is measured")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.Phases, opts.Sets, opts.Against = strings.Split(phases, ","), listOf(sets), listOf(against)
	return opts, opts.validate()
}

func (o options) validate() error {
	for _, phase := range o.Phases {
		if !slices.Contains(allPhases, phase) {
			return fmt.Errorf("--phases: there is no phase %q, only %s", phase, strings.Join(allPhases, ", "))
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

// binaries are the programs that sets are measured with, the one to compare with first.
func (o options) binaries() []string { return append(slices.Clone(o.Against), o.Binary) }

func (o options) wants(phases ...string) bool {
	return slices.ContainsFunc(phases, func(phase string) bool { return slices.Contains(o.Phases, phase) })
}

// turns is how often creating and updating are measured: once if there is nothing to compare with.
func (o options) turns() int {
	if !o.wants(phaseLimit) {
		return 1
	}
	return o.Turns
}

func (o options) total() int { return o.ManagedResources * o.Objects }

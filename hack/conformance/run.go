package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/trellis-k8s/trellis/hack/conformance/suite"
	"github.com/trellis-k8s/trellis/test/landscape/build"
)

// resultsFile has the results of a run, in its directory.
const resultsFile = "results.jsonl"

// run builds what is missing, runs the selected tests that have no result yet, and writes the report. Progress is written to progress.
func (o *options) run(ctx context.Context, out, progress io.Writer) error {
	builder := build.New(o.root, progress)
	builder.Directory = build.ConformanceDirectory
	if err := builder.Build(ctx, build.Conformance()); err != nil {
		return err
	}
	version, err := build.Version(o.root, build.Conformance()[0].Module, build.Conformance()[0].From)
	if err != nil {
		return err
	}
	program := builder.Path("e2e.test")
	tests, known, err := o.list(ctx, program, progress)
	if err != nil {
		return err
	}
	if o.again {
		if err := os.Remove(filepath.Join(o.directory, resultsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("discarding the last results: %w", err)
		}
	}
	results, err := suite.OpenResults(filepath.Join(o.directory, resultsFile))
	if err != nil {
		return err
	}
	remaining := results.Remaining(tests, o.failed)
	fmt.Fprintf(progress, "%d tests are selected, %d remain to be run. Results and logs are in %s.\n", len(tests), len(remaining), o.directory)
	var failure error
	if len(remaining) > 0 || o.build {
		failure = o.onCluster(ctx, program, results, remaining, progress)
	}
	if o.build {
		return failure
	}
	report := suite.NewReport(o.cluster, version, o.focus, tests, results, known)
	write := report.WriteTable
	if o.output == "json" {
		write = report.WriteJSON
	}
	return errors.Join(write(out), failure, report.Err())
}

// list returns the selected conformance tests, and the known failures.
func (o *options) list(ctx context.Context, program string, progress io.Writer) ([]suite.Test, []suite.Known, error) {
	output, err := exec.CommandContext(ctx, program, "--list-conformance-tests").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("listing the conformance tests: %w", err)
	}
	all, err := suite.Parse(output)
	if err != nil {
		return nil, nil, err
	}
	known, err := suite.KnownFailures()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range suite.Unknown(known, all) {
		fmt.Fprintf(progress, "hack/conformance/suite/known.yaml lists a test that does not exist: %s\n", name)
	}
	tests, err := suite.Select(all, o.focus)
	return tests, known, err
}

// onCluster provides the cluster, runs tests on it, and removes what it started.
func (o *options) onCluster(ctx context.Context, program string, results *suite.Results, tests []suite.Test, progress io.Writer) (err error) {
	target, err := o.target(ctx, program, progress)
	if target != nil {
		defer func() { err = errors.Join(err, target.close(context.WithoutCancel(ctx))) }()
	}
	if err != nil || o.build {
		return err
	}
	r := &suite.Runner{
		Program: program, Kubectl: o.kubectl, Kubeconfig: target.kubeconfig, Repositories: target.repositories, Directory: o.directory,
		Arguments: target.arguments, Results: results, Out: progress, Now: time.Now,
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	parallel, serial := suite.Divide(tests, o.size)
	fmt.Fprintf(progress, "Running %d processes with tests, %d at the same time, then %d one after the other.\n", len(parallel), o.parallel, len(serial))
	if err := errors.Join(r.Run(ctx, parallel, o.parallel), r.Run(ctx, serial, 1)); err != nil {
		return err
	}
	return o.repeat(ctx, r, tests, progress)
}

// repeat runs tests that failed in this run for the first time once more, each alone, to separate those that depend on the load.
func (o *options) repeat(ctx context.Context, r *suite.Runner, tests []suite.Test, progress io.Writer) error {
	var shards []suite.Shard
	for _, t := range tests {
		if result := r.Results.Result(t.Name); result.State == suite.Failed && result.Attempts == 1 {
			shards = append(shards, suite.Shard{t})
		}
	}
	if !o.retry || len(shards) == 0 {
		return nil
	}
	fmt.Fprintf(progress, "Repeating %d tests that failed, one at a time.\n", len(shards))
	return r.Run(ctx, shards, 1)
}

package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// shardTimeout limits a process, so that a test that hangs does not end the run.
	shardTimeout = 45 * time.Minute
	// grace is how long an interrupted process may clean up.
	grace = time.Minute
	// emptyShards is how many processes in a row may end without running a test. More of them mean that the cluster is not usable.
	emptyShards = 3
	// tail is how much of a log is shown if a process left no report.
	tail = 2000
)

// Runner runs shards of tests, each in a process of its own.
type Runner struct {
	// Program is the path of e2e.test. Kubectl is that of kubectl.
	Program, Kubectl string
	// Kubeconfig connects an administrator to the tested cluster.
	Kubeconfig string
	// Repositories is a file for the flag --kube-test-repo-list; empty for the public images.
	Repositories string
	// Arguments are further arguments of Program.
	Arguments []string
	// Directory is for logs and reports.
	Directory string
	// Results receives the results.
	Results *Results
	// Out receives a line for each process that ends, and one for each test that fails.
	Out io.Writer
	// Now is the clock.
	Now func() time.Time

	mutex       sync.Mutex
	began       time.Time
	done, total int
	states      map[State]int
	empty       int
}

// Run runs shards, some of them at once, until all have ended or the context ends. Tests that the context interrupts are not run. The
// results are recorded when a process ends. It is an error if processes do not reach their tests.
func (r *Runner) Run(ctx context.Context, shards []Shard, atOnce int) error {
	r.mutex.Lock()
	r.began, r.done, r.total, r.states, r.empty = r.Now(), 0, 0, map[State]int{}, 0
	for _, shard := range shards {
		r.total += len(shard)
	}
	r.mutex.Unlock()
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, shard := range shards {
		group.Go(func() error {
			return r.shard(groupContext, fmt.Sprintf("shard-%03d-%s", i, r.Now().Format("150405.000")), shard)
		})
	}
	return group.Wait()
}

// shard runs the process of a shard, and records its results. Reports and logs are kept only of tests that did not pass.
func (r *Runner) shard(ctx context.Context, name string, shard Shard) error {
	select {
	case <-ctx.Done():
		return nil // its tests stay without a result
	default:
	}
	directory := filepath.Join(r.Directory, name)
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return fmt.Errorf("creating the directory of a shard: %w", err)
	}
	log := filepath.Join(directory, "log")
	ended := r.process(ctx, directory, log, shard)
	results, err := r.read(directory, log, shard, ended)
	if err != nil {
		return err
	}
	allPassed := true
	for i := range results {
		if results[i].State != Passed {
			results[i].Log, allPassed = log, false
		}
	}
	if err := r.Results.Add(results...); err != nil {
		return err
	}
	clean := filepath.Join(directory, report)
	if allPassed {
		clean = directory
	}
	if err := os.RemoveAll(clean); err != nil {
		return fmt.Errorf("removing the report of a shard: %w", err)
	}
	return r.ended(ctx, results)
}

// report is the name of the report that e2e.test writes.
const report = "junit_01.xml"

// process runs the tests of a shard. The error is that of the process, which also fails if a test fails.
func (r *Runner) process(ctx context.Context, directory, log string, shard Shard) error {
	ctx, cancel := context.WithTimeout(ctx, shardTimeout)
	defer cancel()
	arguments := []string{
		"--kubeconfig=" + r.Kubeconfig, "--kubectl-path=" + r.Kubectl, "--provider=skeleton", "--report-dir=" + directory,
		"--e2e-output-dir=" + directory, "--disable-log-dump", "--ginkgo.no-color", "--ginkgo.timeout=" + shardTimeout.String(),
		"--ginkgo.grace-period=" + (grace / 2).String(), "--ginkgo.focus=" + shard.Focus(),
	}
	if r.Repositories != "" {
		arguments = append(arguments, "--kube-test-repo-list="+r.Repositories)
	}
	arguments = append(arguments, r.Arguments...)
	output, err := os.Create(log)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, r.Program, arguments...) //nolint:gosec // the program of the build
	command.Dir, command.Stdout, command.Stderr = directory, output, output
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = grace
	return errors.Join(command.Run(), output.Close())
}

// read returns the results of a shard whose process has ended.
func (r *Runner) read(directory, log string, shard Shard, ended error) ([]Result, error) {
	content, err := os.ReadFile(filepath.Join(directory, report))
	if err == nil {
		return ReadReport(content, shard)
	}
	if !os.IsNotExist(err) {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	message := fmt.Sprintf("the process left no report: %v\n%s", ended, endOf(log))
	results := make([]Result, len(shard))
	for i, t := range shard {
		results[i] = Result{Name: t.Name, State: NotRun, Message: message}
	}
	return results, nil
}

func endOf(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(content[max(0, len(content)-tail):]))
}

// ended reports the progress.
func (r *Runner) ended(ctx context.Context, results []Result) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	ran := false
	for _, result := range results {
		r.states[result.State]++
		ran = ran || result.State != NotRun
		if result.State == Failed || result.State == NotRun && ctx.Err() == nil {
			fmt.Fprintf(r.Out, "  %s: %s\n      %s\n      %s\n", result.State, result.Name, firstLine(result.Message), result.Log)
		}
	}
	r.done += len(results)
	fmt.Fprintf(r.Out, "  %4d/%d  passed %d, failed %d, skipped %d, not run %d, after %s\n", r.done, r.total, r.states[Passed],
		r.states[Failed], r.states[Skipped], r.states[NotRun], r.Now().Sub(r.began).Round(time.Second))
	if ran || ctx.Err() != nil {
		r.empty = 0
		return nil
	}
	if r.empty++; r.empty >= emptyShards {
		return fmt.Errorf("%d processes in a row ran none of their tests: %s", r.empty, firstLine(results[0].Message))
	}
	return nil
}

// firstLine returns the first line of a message, shortened.
func firstLine(message string) string {
	const longest = 300
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if len(line) > longest {
		line = strings.ToValidUTF8(line[:longest], "") + "…"
	}
	return line
}

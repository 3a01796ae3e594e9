// Command fuzz runs the fuzz tests of the repository one after the other and prints a table of the results. It continues
// after a failure.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// grace is how long a target may exceed its time, because it must be built first.
const grace = 20 * time.Minute

// minimizing limits the time to minimize an interesting input. Go's default of a minute for each would leave no time for
// other inputs.
const minimizing = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "fuzz: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.SetOutput(stderr)
	duration := flags.Duration("time", 30*time.Second, "how long each target runs")
	selection := flags.String("run", "", "regular expression of the targets, such as managedresource.FuzzPlan; empty for all")
	workers := flags.Int("parallel", 0, "number of workers of a target; 0 for the number of processors")
	jsonFile := flags.String("json", "", "file for the results as JSON")
	markdownFile := flags.String("markdown", "", "file for the table")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	selected, err := regexp.Compile(*selection)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	targets, err := find(".", selected)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("no fuzz test matches %q", *selection)
	}
	var results []result
	for _, target := range targets {
		fmt.Fprintf(stderr, "%s for %s\n", target, *duration)
		results = append(results, fuzz(ctx, target, *duration, *workers, stderr))
		if err := store(results, *jsonFile, *markdownFile); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Fprintf(stdout, "\n%s", table(results))
	for _, result := range results {
		if result.Failure != "" {
			return errors.New("not all targets are clean; their inputs are below testdata/fuzz")
		}
	}
	return ctx.Err()
}

// fuzz runs one target.
func fuzz(ctx context.Context, target target, duration time.Duration, workers int, log io.Writer) result {
	ctx, cancel := context.WithTimeout(ctx, duration+grace)
	defer cancel()
	arguments := []string{
		"test", "-run", "^$", "-fuzz", "^" + target.Name + "$", "-fuzztime", duration.String(), "-fuzzminimizetime", minimizing.String(),
	}
	if workers > 0 {
		arguments = append(arguments, "-parallel", fmt.Sprint(workers))
	}
	var output bytes.Buffer
	arguments = append(arguments, "./"+filepath.ToSlash(target.Package))
	command := exec.CommandContext(ctx, goCommand(), arguments...) //nolint:gosec // the user of the command chooses its arguments
	command.Stdout, command.Stderr = &output, &output
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // this stops the workers
	command.WaitDelay = time.Minute
	err := command.Run()
	result := read(target, output.String(), err)
	if result.Failure != "" {
		fmt.Fprintf(log, "%s\n", output.String())
	}
	return result
}

func goCommand() string {
	if command := os.Getenv("GO"); command != "" {
		return command
	}
	return "go"
}

// store writes the results to the named files.
func store(results []result, jsonFile, markdownFile string) error {
	encoded, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	for file, content := range map[string][]byte{jsonFile: append(encoded, '\n'), markdownFile: []byte(table(results))} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

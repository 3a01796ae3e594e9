// Command testtimes runs `go test -json`, prints the results of packages and the output of failed tests, and writes the time of each package and of
// the slowest tests to a file, and the packages and tests that failed to another.
//
//	go run ./hack/testtimes --times bin/test-times.txt --failed bin/test-failed.txt go test -json ./...
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// printed is the number of packages that are printed at the end.
const printed = 30

func main() {
	times := flag.String("times", "bin/test-times.txt", "file of the times of packages and tests")
	failed := flag.String("failed", "bin/test-failed.txt", "file of the packages that failed, one a line, with a pattern of the failed tests")
	flag.Parse()
	code, err := run(flag.Args(), *times, *failed)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testtimes: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run runs the command, and returns its exit code.
func run(arguments []string, times, failed string) (int, error) {
	if len(arguments) == 0 {
		return 0, errors.New("no command is given: pass go test -json and its arguments")
	}
	command := exec.Command(arguments[0], arguments[1:]...) //nolint:gosec,noctx // the command line of the developer; it has its own timeout
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	var r results
	err = r.read(output, os.Stdout)
	_, copyErr := io.Copy(io.Discard, output) // after an error: the command must not block
	waitErr := command.Wait()
	err = errors.Join(err, copyErr)
	if exit := (*exec.ExitError)(nil); !errors.As(waitErr, &exit) {
		err = errors.Join(err, waitErr)
	}
	packages := r.packageTimes()
	fmt.Fprintf(os.Stdout, "\nThe %d slowest packages (%s has all):\n%s", printed, times, strings.Join(packages[:min(printed, len(packages))], ""))
	if len(r.failures) > 0 {
		fmt.Fprintf(os.Stdout, "\nMessages of the failed tests (their logs are above):\n%s", strings.Join(r.failures, ""))
	}
	err = errors.Join(err, write(times, append(packages, r.testTimes()...)), write(failed, r.failed()))
	return command.ProcessState.ExitCode(), err
}

func write(path string, lines []string) error {
	return os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600)
}

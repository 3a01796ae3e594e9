package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// forms are the available forms of a report.
var forms = []string{"table", "markdown", "json"}

// Flags are the flags of a program that measures, including those common to all such programs.
type Flags struct {
	*flag.FlagSet
	output *string
}

// NewFlags returns the flags of a program. It prints the usage to out if help is requested. The form of the report
// is stored in output.
func NewFlags(name, usage string, out io.Writer, output *string) *Flags {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
	}
	flags.StringVar(output, "o", forms[0], "form of the report: "+strings.Join(forms, ", "))
	return &Flags{FlagSet: flags, output: output}
}

// Parse parses the arguments of the program. The error is [flag.ErrHelp] if help is requested, or names the wrong
// argument.
func (f *Flags) Parse(args []string) error {
	if err := f.FlagSet.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if !slices.Contains(forms, *f.output) {
		return fmt.Errorf("-o: unknown form %q, use one of %s", *f.output, strings.Join(forms, ", "))
	}
	return nil
}

// Main runs a program that measures, until it finishes or is interrupted. It returns the exit code: 0, 1 for a
// failure, or 2 for wrong arguments. The report is written to standard output, progress and errors to standard
// error.
func Main[O any](name string, parse func(args []string, out io.Writer) (O, error),
	run func(ctx context.Context, opts O, out, progress io.Writer) error,
) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // errors are returned

	opts, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	}
	if err := run(ctx, opts, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Package app is the program kubectl-mr, apart from its function main. Test packages that run the program import it, so that go test does not
// answer from its cache when the program has changed.
package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// version of the program.
var version = "dev"

// Program identifies the program: tests build it from the path of the package of this type.
type Program struct{}

// completer is the command that kubectl calls to complete the arguments of this plugin (kubectl documentation, "Extend
// kubectl with plugins").
const completer = "kubectl_complete-mr"

// Main runs the program with its command line, and exits. linked is the version to report.
func Main(linked string) {
	version = linked
	os.Exit(run(os.Args))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // errors are returned
	klog.SetLogger(logr.Discard())
	cobra.EnableCommandSorting = false // keep the order of their typical use

	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	c := kubectl.NewConsole(streams, version)
	slog.SetDefault(slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{ReplaceAttr: withoutTime}))) // warnings of Helm's library
	called := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	rest := args[1:]
	if called == completer {
		rest = append([]string{cobra.ShellCompRequestCmd}, rest...)
	}
	command := cli.NewCommand(c, displayName(called))
	command.SetArgs(rest)
	err := c.Explain(command.ExecuteContext(ctx))
	if err != nil && err.Error() != "" && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, c.Err.Paint(screen.Bad, "error: ")+err.Error())
	}
	if ctx.Err() != nil {
		return interrupted
	}
	return console.ExitCode(err)
}

// interrupted is the exit code of an interrupted program, as in shells.
const interrupted = 130

// withoutTime drops the time from log lines on a terminal.
func withoutTime(groups []string, attribute slog.Attr) slog.Attr {
	if len(groups) == 0 && attribute.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attribute
}

// displayName returns the name of the command in messages: the name of the kubectl plugin, or the name of the program.
func displayName(called string) string {
	if plugin, isPlugin := strings.CutPrefix(called, "kubectl-"); isPlugin {
		return "kubectl " + strings.ReplaceAll(plugin, "_", "-")
	}
	if called == completer {
		return "kubectl mr"
	}
	return called
}

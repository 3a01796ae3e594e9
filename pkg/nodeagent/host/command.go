package host

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// maxOutput is the number of bytes of the output of a failed command that an error contains.
const maxOutput = 512

// Commands runs programs of the machine.
type Commands interface {
	// Run runs a program and returns its standard output. The error has the end of its error output. It stops the program if the context ends.
	Run(ctx context.Context, name string, args ...string) ([]byte, error)
}

// Exec runs programs.
type Exec struct{}

// Run implements Commands.
func (Exec) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	if err := command.Run(); err != nil {
		text := strings.TrimSpace(errOut.String())
		return out.Bytes(), fmt.Errorf("run %s: %w: %s", strings.Join(append([]string{name}, firstWords(args)...), " "), err,
			conditiontext.Shorten(text[max(0, len(text)-maxOutput):], maxOutput))
	}
	return out.Bytes(), nil
}

// firstWords returns the arguments that are subcommands, for messages: others may be secret.
func firstWords(args []string) []string {
	for i, arg := range args {
		if i == 2 || strings.HasPrefix(arg, "-") || strings.Contains(arg, "/") {
			return args[:i]
		}
	}
	return args
}

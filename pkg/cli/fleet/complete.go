package fleet

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// Complete completes Shoots, Seeds and Gardens for arguments that begin like one. Otherwise it calls the other function.
func Complete(c *console.Console, otherwise cobra.CompletionFunc) cobra.CompletionFunc {
	return func(command *cobra.Command, given []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const alone = cobra.ShellCompDirectiveNoFileComp
		var begins []cobra.Completion
		for _, kind := range []string{Shoot, Seed, Garden} {
			begin := arguments[kind]
			switch {
			case len(given) > 0 || prefix == "":
			case strings.HasPrefix(prefix, begin):
				return complete(command.Context(), c, kind, prefix), alone
			case strings.HasPrefix(begin, prefix):
				begins = append(begins, begin)
			}
		}
		offered, directive := otherwise(command, given, prefix)
		if len(begins) > 0 {
			return append(offered, begins...), alone | cobra.ShellCompDirectiveNoSpace
		}
		return offered, directive
	}
}

// complete returns the Shoots, Seeds or Gardens with a prefix. It returns none if they cannot be read.
func complete(ctx context.Context, c *console.Console, kind, prefix string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, console.CompletionTimeout)
	defer cancel()
	garden, err := connect(c, kind)
	if err != nil {
		return nil
	}
	namespace := ""
	if parts := strings.Split(prefix, "/"); kind == Shoot && len(parts) > 2 {
		namespace = parts[1]
	}
	found, err := names(ctx, garden, kind, namespace)
	if err != nil {
		return nil
	}
	var offered []cobra.Completion
	for _, each := range found {
		if argument := (Name{kind, each}).Argument(); strings.HasPrefix(argument, prefix) {
			offered = append(offered, argument)
		}
	}
	return offered
}

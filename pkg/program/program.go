// Package program implements the command line of programs that read a configuration file.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// Program is a program that reads a configuration file.
type Program[C any] struct {
	// Name is the name of the program. Short, Long and Example are the texts of its help.
	Name, Short, Long, Example string
	// Version is the output of --version.
	Version string
	// Load reads the configuration file at a path.
	Load func(path string) (C, error)
	// Overrides returns the fields of the configuration that environment variables replace if they are set and not empty.
	Overrides func(config C) map[string]*string
	// Run runs the program until the context ends.
	Run func(ctx context.Context, config C) error
}

// Command returns the command of the program. It has the flags --config and --version.
func (p Program[C]) Command() *cobra.Command {
	var configFile string
	command := &cobra.Command{
		Use: p.Name + " --config FILE", Short: p.Short, Long: p.Long, Example: p.Example, Args: cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
	}
	version := VersionFlag(command, p.Version)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if version() {
			return nil
		}
		if configFile == "" {
			return errors.New(`required flag(s) "config" not set: name the configuration file`)
		}
		config, err := p.Load(configFile)
		if err != nil {
			return err
		}
		if p.Overrides != nil {
			for name, field := range p.Overrides(config) {
				*field = cmp.Or(os.Getenv(name), *field)
			}
		}
		return p.Run(command.Context(), config)
	}
	command.Flags().StringVar(&configFile, "config", "", "path of the configuration file")
	return command
}

// VersionFlag adds the flag --version to a command. The returned function prints the version and returns true if the
// flag is set. cobra's own version flag uses templates that call methods by name, which makes the linker keep all
// methods of a program (14 MB).
func VersionFlag(command *cobra.Command, version string) (printed func() bool) {
	set := command.Flags().BoolP("version", "v", false, "print the version")
	return func() bool {
		if *set {
			fmt.Fprintln(command.OutOrStdout(), version)
		}
		return *set
	}
}

// Execute runs a command. If it fails, Execute prints the name of the program and the error, and exits with status 1.
func Execute(ctx context.Context, command *cobra.Command) {
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", command.Name(), err)
		os.Exit(1)
	}
}

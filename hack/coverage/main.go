// Command coverage prints a coverage profile as a table by package, and the statements that were not executed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "coverage: %v\n", err)
		os.Exit(1)
	}
}

func run(arguments []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("coverage", flag.ContinueOnError)
	flags.SetOutput(stderr)
	uncovered := flags.String("uncovered", "", "regular expression of packages whose uncovered statements are listed")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("name one profile")
	}
	listed, err := regexp.Compile(*uncovered)
	if err != nil {
		return fmt.Errorf("-uncovered: %w", err)
	}
	file, err := os.Open(flags.Arg(0))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	blocks, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Name(), err)
	}
	fmt.Fprint(stdout, table(blocks))
	if *uncovered == "" {
		return nil
	}
	fmt.Fprintf(stdout, "\nNot run:\n%s", missing(blocks, listed))
	return nil
}

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/process"
)

// logging says what is logged to standard error, and how.
type logging struct{ level, format string }

func (l *logging) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.level, "log-level", "info", "Least important messages that are logged: debug, info or error.")
	flags.StringVar(&l.format, "log-format", "json", "Format of the log: json or text.")
}

// apply makes all packages log as the flags say.
func (l *logging) apply() error {
	var errs []error
	if !slices.Contains([]string{"debug", "info", "error"}, l.level) {
		errs = append(errs, fmt.Errorf("--log-level: unknown level %q, use debug, info or error", l.level))
	}
	if !slices.Contains([]string{"json", "text"}, l.format) {
		errs = append(errs, fmt.Errorf("--log-format: unknown format %q, use json or text", l.format))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	logger := process.NewLogger(l.level, l.format)
	log.SetLogger(logger)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	return nil
}

package app

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/process"
)

// logging is the level and format of the log on standard error.
type logging struct{ level, format string }

func (l *logging) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.level, "log-level", "info", "Minimum severity of logged messages: debug, info or error.")
	flags.StringVar(&l.format, "log-format", "json", "Format of the log: json or text.")
}

// apply configures the logs of all packages according to the flags.
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

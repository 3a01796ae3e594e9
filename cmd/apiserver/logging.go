package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

const (
	formatJSON = "json"
	formatText = "text"
)

var levels = map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}

// logging says what is logged to standard error, and how.
type logging struct{ level, format string }

func (l *logging) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.level, "log-level", "info", "Least important messages that are logged: debug, info or error.")
	flags.StringVar(&l.format, "log-format", formatJSON, "Format of the log: json or text.")
}

// apply makes all packages log as the flags say.
func (l *logging) apply() error {
	level, ok := levels[l.level]
	var errs []error
	if !ok {
		errs = append(errs, fmt.Errorf("--log-level: unknown level %q, use debug, info or error", l.level))
	}
	encoder := zap.JSONEncoder(isoTime)
	switch l.format {
	case formatJSON:
	case formatText:
		encoder = zap.ConsoleEncoder(isoTime)
	default:
		errs = append(errs, fmt.Errorf("--log-format: unknown format %q, use json or text", l.format))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	logger := zap.New(zap.Level(level), encoder, zap.StacktraceLevel(zapcore.PanicLevel))
	log.SetLogger(logger)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	return nil
}

func isoTime(config *zapcore.EncoderConfig) { config.EncodeTime = zapcore.ISO8601TimeEncoder }

package app

import (
	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
)

// newLogger returns a logger to standard error in the configured level and format.
func newLogger(config *configv1alpha1.ResourceManagerConfiguration) logr.Logger {
	level := map[string]zapcore.Level{
		"debug": zapcore.DebugLevel,
		"info":  zapcore.InfoLevel,
		"error": zapcore.ErrorLevel,
	}[config.LogLevel]
	encoder := zap.JSONEncoder(isoTime)
	if config.LogFormat == "text" {
		encoder = zap.ConsoleEncoder(isoTime)
	}
	return zap.New(zap.Level(level), encoder, zap.StacktraceLevel(zapcore.PanicLevel))
}

// newRecorder returns a rate-limited recorder of Events in a cluster.
func newRecorder(to cluster.Cluster, reporter string) events.EventRecorder {
	return eventlimit.New(to.GetEventRecorder(reporter), to.GetScheme(), clock.RealClock{})
}

func isoTime(config *zapcore.EncoderConfig) {
	config.EncodeTime = zapcore.ISO8601TimeEncoder
}

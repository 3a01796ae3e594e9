package main

import (
	"net"
	"strconv"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
)

// component is the name of the process in Events, user agents and status fields.
const component = "gardenlet"

// newLogger returns a logger to standard error in the configured level and format.
func newLogger(config *gardenletv1alpha1.GardenletConfiguration) logr.Logger {
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

func isoTime(config *zapcore.EncoderConfig) { config.EncodeTime = zapcore.ISO8601TimeEncoder }

// newRecorder returns what writes Events to a cluster, not more than people can read.
func newRecorder(to cluster.Cluster) events.EventRecorder {
	return eventlimit.New(to.GetEventRecorder(component), to.GetScheme(), clock.RealClock{})
}

func address(server *gardenletv1alpha1.Server) string {
	return net.JoinHostPort(server.BindAddress, strconv.Itoa(server.Port))
}

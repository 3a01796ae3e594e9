// Package process has the common parts of programs with controllers: the logger, the connection to a cluster, and the
// check that a cache has synced.
package process

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
)

// cacheProbeTimeout is how long a health check waits for a cache.
const cacheProbeTimeout = time.Second

// NewLogger returns a logger to standard error. The level is debug, info or error. The format is json or text.
func NewLogger(level, format string) logr.Logger {
	levels := map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}
	isoTime := func(encoder *zapcore.EncoderConfig) { encoder.EncodeTime = zapcore.ISO8601TimeEncoder }
	encoder := zap.JSONEncoder(isoTime)
	if format == "text" {
		encoder = zap.ConsoleEncoder(isoTime)
	}
	return zap.New(zap.Level(levels[level]), encoder, zap.StacktraceLevel(zapcore.PanicLevel))
}

// RestConfig returns the configuration of a connection to a cluster. It uses the kubeconfig file at the path or, if the
// path is empty, the service account of the Pod.
func RestConfig(path string) (*rest.Config, error) {
	if path != "" {
		return kubeconfig.Read(path)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("no kubeconfig is set, and the process does not run in a Pod: %w", err)
	}
	return config, nil
}

// CacheSynced returns a readiness check that fails until the cache of a cluster has synced.
func CacheSynced(cluster string, cache interface{ WaitForCacheSync(context.Context) bool }) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), cacheProbeTimeout)
		defer cancel()
		if !cache.WaitForCacheSync(ctx) {
			return fmt.Errorf("the cache of the %s is not filled yet", cluster)
		}
		return nil
	}
}

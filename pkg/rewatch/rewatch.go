// Package rewatch restarts watches soon after an API server recovers from an outage. The delays of client-go grow to a
// minute, during which changes are not noticed.
package rewatch

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/klog/v2"
)

// Backoff returns the delays before a reflector retries a request after an outage (see IsOutage). They are at most half
// a second. The client itself waits longer if the response has a Retry-After header.
func Backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: 400 * time.Millisecond}
}

// NewInformer is for cache.Options of controller-runtime. Its informers restart watches after the delays of Backoff.
// Informers have no setting for the delays of their reflectors (kubernetes/kubernetes#136943), so failed watches are
// retried before a reflector sees the failure.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	retries := &retrying{ListerWatcherWithContext: cache.ToListerWatcherWithContext(lw), of: lw}
	return cache.NewSharedIndexInformer(retries, example, resync, indexers)
}

// retrying retries failed watches. It does not retry lists. A reflector needs them only if watches cannot stream the
// list or a watch ended with an error, and passes no context that could end the retries.
type retrying struct {
	cache.ListerWatcherWithContext
	of cache.ListerWatcher
}

var (
	_ cache.ListerWatcher            = &retrying{}
	_ cache.ListerWatcherWithContext = &retrying{}
)

// List implements cache.ListerWatcher.
func (r *retrying) List(options metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher.
func (r *retrying) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return r.ListerWatcherWithContext.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported forwards to client-go whether lists can be streamed.
func (r *retrying) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(r.of)
}

// WatchWithContext starts a watch. During an outage of the API server, it retries until the context ends.
func (r *retrying) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	delays := Backoff()
	for attempt := 0; ; attempt++ {
		events, err := r.ListerWatcherWithContext.WatchWithContext(ctx, options)
		if err == nil || !IsOutage(err) {
			return events, err
		}
		if attempt == 0 {
			klog.FromContext(ctx).Info("Waiting for the API server to watch", "error", err.Error())
		}
		select {
		case <-time.After(delays.Step()):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// IsOutage reports whether a request failed because the API server did not respond, or is temporarily unable to serve
// it.
func IsOutage(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// Package rewatch restarts watches as soon as an API server answers again after an outage. The delays of client-go grow
// to a minute, and changes go unnoticed in that time.
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

// Backoff returns the delays of a reflector before it asks again an API server that did not answer, or answered that it cannot serve at
// the moment: at most half a second. A client waits longer by itself if the answer says so, by Retry-After.
func Backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: 400 * time.Millisecond}
}

// NewInformer is for cache.Options of controller-runtime. Its informers begin watches again after the delays of Backoff. Informers have
// no setting for the delays of their reflectors (kubernetes/kubernetes#136943), so failed watches are repeated before a reflector sees
// the failure.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&retrying{ListerWatcherWithContext: cache.ToListerWatcherWithContext(lw), of: lw}, example, resync, indexers)
}

// retrying repeats watches that failed. Lists are not repeated: a reflector needs one only where watches cannot stream it or a watch was
// ended by an error, and passes no context that could end a repetition.
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

// IsWatchListSemanticsUnSupported passes on to client-go whether lists can be streamed.
func (r *retrying) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(r.of)
}

// WatchWithContext begins a watch. While the API server does not answer it tries again, until the context ends.
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

// IsOutage reports whether a request failed because the API server did not answer, or answered that it cannot serve at the moment.
func IsOutage(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

package rewatch

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

var refused = &url.Error{Op: "Get", URL: "https://api", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

// TestNewInformer_Outage checks that an informer notices changes as soon as the API server responds again.
func TestNewInformer_Outage(t *testing.T) {
	for name, failure := range map[string]error{
		"connections are refused": refused,
		"429":                     apierrors.NewTooManyRequestsError("too many requests"),
		"503":                     apierrors.NewServiceUnavailable("starting"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				begun, outage := time.Now(), 3*time.Minute
				open := make(chan time.Duration, 2)
				first := watch.NewFake()
				watches := 0
				lister := &cache.ListWatch{
					ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
						return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
					},
					WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
						if options.SendInitialEvents != nil {
							return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
						}
						if watches++; watches == 1 {
							return first, nil
						}
						if since := time.Since(begun); since < outage {
							return nil, failure
						}
						open <- time.Since(begun) - outage
						events := watch.NewFake()
						context.AfterFunc(ctx, events.Stop)
						return events, nil
					},
				}
				informer := NewInformer(lister, &corev1.ConfigMap{}, 0, cache.Indexers{})
				go informer.RunWithContext(ctx)
				synctest.Wait()
				time.Sleep(time.Second)
				first.Stop()
				if late := <-open; late > 500*time.Millisecond {
					t.Errorf("the watch starts %s after the API server responds again", late)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestIsOutage(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"refused":          {refused, true},
		"a gateway":        {apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", schema.GroupResource{}, "", "", 0, true), true},
		"rights":           {apierrors.NewForbidden(schema.GroupResource{}, "", nil), false},
		"an old version":   {apierrors.NewResourceExpired("too old"), false},
		"not a kind":       {apierrors.NewNotFound(schema.GroupResource{}, ""), false},
		"too many at once": {apierrors.NewTooManyRequests("wait", 1), true},
	} {
		if got := IsOutage(test.err); got != test.want {
			t.Errorf("%s: IsOutage(%v) = %t, want %t", name, test.err, got, test.want)
		}
	}
}

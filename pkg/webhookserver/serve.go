package webhookserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Register registers the handlers of webhooks with a server and starts the caches that they read, until the context ends.
// The returned check fails until the caches are filled. The error names the webhook that cannot be served.
func Register(
	ctx context.Context, server webhook.Server, informers cache.Informers, webhooks []Webhook, metrics Metrics,
) (ready func() error, err error) {
	var all []waiting
	for _, row := range webhooks {
		caches := waiting{webhook: row.Name}
		for _, object := range row.Reads {
			informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
			if err != nil {
				return nil, fmt.Errorf("webhook %s: cache of %T: %w", row.Name, object, err)
			}
			caches.synced = append(caches.synced, informer.HasSynced)
		}
		all = append(all, caches)
		server.Register(row.Path, inTime(caches.before(row, metrics.observe(row, row.Handler))))
	}
	return func() error {
		for _, caches := range all {
			if err := caches.check(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// readTimeout limits the time to read the body of a request. API servers do not wait longer for a response.
const readTimeout = 30 * time.Second

// inTime closes the connections of clients that send their request too slowly, so that connections do not pile up. The
// server does this only for headers.
func inTime(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		// Ignore the error. Only servers in tests, which have no connection, do not support deadlines.
		_ = http.NewResponseController(writer).SetReadDeadline(time.Now().Add(readTimeout))
		handler.ServeHTTP(writer, request)
	})
}

// waiting is a webhook that waits for caches.
type waiting struct {
	webhook string
	synced  []func() bool
}

func (w waiting) check() error {
	for _, synced := range w.synced {
		if !synced() {
			return fmt.Errorf("the caches of the webhook %s are not filled yet", w.webhook)
		}
	}
	return nil
}

// before returns a handler that calls another one only if the caches are filled. Until then, it rejects requests of
// webhooks with the failure policy Fail with a status on which clients retry. Other requests fail with an HTTP error, so
// that the API server admits them.
func (w waiting) before(row Webhook, handler http.Handler) http.Handler {
	if len(w.synced) == 0 {
		return handler
	}
	var refuse http.Handler = http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		http.Error(writer, w.check().Error(), http.StatusServiceUnavailable)
	})
	if row.Calls != nil && row.Calls.FailurePolicy == admissionregistrationv1.Fail {
		refuse = &admission.Webhook{Handler: admit.Validating(func(context.Context, *admission.Request) error {
			if err := w.check(); err != nil {
				return admit.Unavailable("%w", err)
			}
			return admit.Unavailable("the caches of the webhook %s have just been filled", w.webhook)
		})}
	}
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if w.check() == nil {
			handler.ServeHTTP(writer, request)
			return
		}
		refuse.ServeHTTP(writer, request)
	})
}

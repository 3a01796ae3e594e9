package seedauthorizer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	"github.com/trellis-k8s/trellis/pkg/metrics"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/accessreview"
)

// PathSeed and PathShoot are the paths of the webhooks.
const (
	PathSeed  = "/webhooks/auth/seed"
	PathShoot = "/webhooks/auth/shoot"
)

// answerTimeout limits the time of a response. It is a little shorter than the 10 seconds that an API server waits.
const answerTimeout = 9 * time.Second

// Metrics are the metrics of the authorizer. The zero value counts nothing.
type Metrics struct {
	decisions *metrics.Counter
	duration  *metrics.Histogram
}

// NewMetrics returns metrics that are registered with a registry.
func NewMetrics(registry prometheus.Registerer) Metrics {
	return Metrics{
		decisions: metrics.NewCounter(registry, "seed_authorizer_decisions_total",
			"Requests decided by the authorizer of gardenlets. decision: allowed, no_opinion, error.", "decision").
			StartAtZero("allowed", "no_opinion", "error"),
		duration: metrics.NewHistogram(registry, "seed_authorizer_decision_duration_seconds",
			"Time of decisions of the authorizer of gardenlets.", []float64{.00001, .0001, .0005, .001, .005, .05, .5, 5}),
	}
}

// Options are the options of the webhook.
type Options struct {
	Paths Paths
	// Ready returns an error while the graph is not complete. No request is decided before.
	Ready func() error
	// Absent reads whether an object does not exist.
	Absent  Absent
	Metrics Metrics
	Log     logr.Logger
}

// NewHandler returns the webhook. It serves both paths.
func NewHandler(options Options) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) { options.serve(writer, request) })
}

// serve answers a review. Without a decision, it answers with an HTTP error, for which API servers refuse the request with an error that makes
// clients retry. "No opinion" would be final.
func (o *Options) serve(writer http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), answerTimeout)
	defer cancel()
	form, spec, code, err := accessreview.Read(writer, request)
	if err != nil {
		http.Error(writer, err.Error(), code)
		return
	}
	begin := time.Now()
	decision, err := o.decide(ctx, spec)
	if err != nil {
		o.Metrics.decisions.Inc("error")
		o.Log.Error(err, "Could not authorize a request", "user", spec.User)
		http.Error(writer, err.Error(), http.StatusServiceUnavailable)
		return
	}
	verdict := "no_opinion"
	if decision.Allowed {
		verdict = "allowed"
	}
	o.Metrics.decisions.Inc(verdict)
	o.Metrics.duration.Observe(time.Since(begin))
	status := authorizationv1.SubjectAccessReviewStatus{Allowed: decision.Allowed, Reason: decision.Reason}
	if err := accessreview.Write(writer, form, status); err != nil {
		o.Log.V(1).Info("The API server did not wait for the response", "error", err.Error())
	}
}

func (o *Options) decide(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (Decision, error) {
	if err := o.Ready(); err != nil {
		return Decision{}, fmt.Errorf("the authorizer of gardenlets cannot decide yet: %w", err)
	}
	return Decide(ctx, o.Paths, o.Absent, spec)
}

// LiveAbsent returns a function that reads the metadata of objects from the API server.
func LiveAbsent(live client.Reader, mapper apimeta.RESTMapper) Absent {
	return func(ctx context.Context, resource schema.GroupResource, vertex graph.Vertex) (bool, error) {
		kind, err := mapper.KindFor(resource.WithVersion(""))
		if err != nil {
			return false, fmt.Errorf("find the kind of %s: %w", resource, err)
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		err = live.Get(ctx, client.ObjectKey{Namespace: vertex.Namespace, Name: vertex.Name}, object)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}
}

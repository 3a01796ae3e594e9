package nodeagentauthorizer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/accessreview"
)

// Path is the path of the webhook.
const Path = "/webhooks/auth/nodeagent"

const (
	// answerTimeout limits the time of a response. It is a little shorter than the 10 seconds that an API server waits.
	answerTimeout = 9 * time.Second
	// cacheTimeout limits the wait for caches that are not filled yet. After that, facts are read from API servers.
	cacheTimeout = 2 * time.Second
	// maxLogged is the maximum number of bytes that are logged of a value that a user chooses.
	maxLogged = 320
)

// Cluster reads facts from a cluster.
type Cluster struct {
	// Cache holds the objects that the package documentation lists.
	Cache client.Reader
	// Live reads from the API server.
	Live client.Reader
}

// Options are the options of the authorizer.
type Options struct {
	// Source is the cluster with the Machines, if MachineNamespace is set. Target is the cluster with the Nodes.
	Source, Target Cluster
	// MachineNamespace is the namespace of the Machines, whose label names their Node. If nil, the user name contains the
	// name of the Node.
	MachineNamespace *string
	// AuthorizeWithSelectors is set if API servers send the selectors of lists and watches. These must then select Pods of
	// the agent's own Node.
	AuthorizeWithSelectors bool
	// Metrics count the decisions. The zero value counts nothing.
	Metrics Metrics
	Log     logr.Logger
	Clock   clock.PassiveClock
}

// handler serves API servers.
type handler struct {
	settings settings
	lookup   *lookup
	metrics  Metrics
	log      logr.Logger
}

// NewHandler returns the webhook.
func NewHandler(options Options) http.Handler {
	return &handler{
		settings: settings{machines: options.MachineNamespace != nil, selectors: options.AuthorizeWithSelectors},
		lookup:   newLookup(options), metrics: options.Metrics, log: options.Log,
	}
}

// ServeHTTP responds to a SubjectAccessReview in the version of the request. Other requests get an HTTP error status, to
// which API servers apply their failure policy.
func (h *handler) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), answerTimeout)
	defer cancel()
	// Ignore the error. Only servers in tests, which have no connection, do not support deadlines.
	_ = http.NewResponseController(writer).SetReadDeadline(time.Now().Add(answerTimeout))

	form, spec, code, err := accessreview.Read(writer, request)
	if err != nil {
		h.refuse(writer, code, err)
		return
	}
	if err := accessreview.Write(writer, form, h.answer(ctx, spec)); err != nil {
		h.log.V(1).Info("The API server did not wait for the response", "error", err.Error())
	}
}

func (h *handler) refuse(writer http.ResponseWriter, code int, err error) {
	h.log.V(1).Info("Rejected a malformed SubjectAccessReview", "status", code, "error", err.Error())
	http.Error(writer, err.Error(), code)
}

// answer returns the status of a review. If there is no decision, the status contains the error, which API servers treat
// as no opinion.
func (h *handler) answer(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	decision, err := h.decide(ctx, spec)
	log := h.log.WithValues(logged(spec)...)
	if err != nil {
		log.Error(err, "Could not authorize a request")
		h.metrics.decisions.Inc(failed)
		return authorizationv1.SubjectAccessReviewStatus{EvaluationError: fmt.Sprintf("%d %s", codeOf(err), err)}
	}
	log.V(1).Info("Authorized a request", "decision", decision.verdict, "reason", decision.reason)
	h.metrics.decisions.Inc(string(decision.verdict))
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision.verdict == allowed, Denied: decision.verdict == denied, Reason: decision.reason,
	}
}

// decide decides based on caches. Because caches may be stale or not filled, it reads the facts of denied and failed
// requests from API servers and decides again.
func (h *handler) decide(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (result decision, err error) {
	defer func() {
		if value := recover(); value != nil {
			h.log.Error(fmt.Errorf("%v", value), "The authorizer of node agents panicked", "stack", string(debug.Stack()))
			result, err = decision{}, errors.New("internal error")
		}
	}()
	view := &view{lookup: h.lookup, agent: machineOf(spec)}
	inTime, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	result, err = decide(inTime, h.settings, spec, view)
	if err != nil || result.verdict == denied {
		view.live = true
		result, err = decide(ctx, h.settings, spec, view)
	}
	return result, err
}

// codeOf returns the HTTP status that describes an error.
func codeOf(err error) int {
	var tooMany tooManyReadsError
	switch {
	case errors.As(err, &tooMany):
		return http.StatusTooManyRequests
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

// logged returns the attributes of a request that may be logged.
func logged(spec *authorizationv1.SubjectAccessReviewSpec) []any {
	values := []any{"user", shortened(spec.User)}
	if attributes := spec.ResourceAttributes; attributes != nil {
		values = append(values, "verb", shortened(attributes.Verb),
			"resource", shortened(attributes.Resource), "name", shortened(attributes.Name))
	}
	return values
}

func shortened(text string) string { return text[:min(len(text), maxLogged)] }

package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/ui"
)

const (
	// grantedFor is how long a granted permission is cached, and thus how long a revoked permission can still be used.
	grantedFor = 10 * time.Second
	// deniedFor is how long a denied permission for a namespace is cached.
	deniedFor = time.Minute
	// reviewTimeout limits the time for all access reviews of a request.
	reviewTimeout = 10 * time.Second
	// reviewsInFlight is the maximum number of concurrent access reviews for one viewer.
	reviewsInFlight = 8
)

// session is the state of a viewer.
type session struct {
	gate   *Gate
	tokens tokens
	bounds *ui.Bounds
	config *rest.Config
	asks   authorizationclient.SelfSubjectAccessReviewInterface
	// used is the time of the last use. The mutex of sessions guards it.
	used time.Time

	// console and name are set after the API server has accepted the token.
	console *console.Console
	name    string

	mu    sync.Mutex
	known access
	at    time.Time
	// denied contains namespaces without permission, and the time until which they are not reviewed again.
	denied map[string]time.Time
}

// access describes the ManagedResources that a viewer may see.
type access struct {
	sees          ui.Namespaces
	scope, notice string
}

// newSession returns a session for tokens that the cluster has not accepted yet.
func (g *Gate) newSession(given tokens) (*session, error) {
	config := withToken(g.options.Source, given.source, g.options.Version)
	client, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the cluster: %w", err)
	}
	return &session{
		gate: g, tokens: given, bounds: ui.NewBounds(maxReadsOfOne, maxStreamsOfOne), config: config, asks: client.SelfSubjectAccessReviews(),
		denied: map[string]time.Time{},
	}, nil
}

// withToken returns the configuration for a cluster with the token of a viewer.
func withToken(config *rest.Config, token, version string) *rest.Config {
	config = rest.CopyConfig(config)
	config.BearerToken = token
	config.QPS = -1 // API servers limit requests by viewer (API priority and fairness)
	config.UserAgent = "resource-manager/" + version + " (page)"
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// refusedError is returned if the API server does not accept a token.
type refusedError struct{ *ui.DeniedError }

// Unwrap returns the error for the page.
func (e *refusedError) Unwrap() error { return e.DeniedError }

func isRefused(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused)
}

// access returns the access of the viewer. The result is cached for grantedFor.
func (s *session) access(ctx context.Context) (access, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.gate.options.Clock.Now()
	if !s.at.IsZero() && now.Sub(s.at) < grantedFor {
		return s.known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	all, err := s.mayFollow(ctx, "")
	if err != nil {
		return access{}, err
	}
	if s.console == nil {
		if err := s.open(ctx); err != nil {
			return access{}, err
		}
	}
	known := access{sees: ui.AllNamespaces(), scope: s.gate.scope()}
	if !all {
		if known, err = s.namespaces(ctx, now); err != nil {
			return access{}, err
		}
	}
	s.known, s.at = known, now
	return known, nil
}

// scope describes the namespaces that viewers see who may see all.
func (g *Gate) scope() string {
	switch len(g.options.Namespaces) {
	case 0:
		return "all namespaces"
	case 1:
		return "namespace " + g.options.Namespaces[0]
	}
	return fmt.Sprintf("the %d namespaces of this resource-manager", len(g.options.Namespaces))
}

// namespaces returns the access of a viewer who may not see all namespaces.
func (s *session) namespaces(ctx context.Context, now time.Time) (access, error) {
	names, more := s.gate.options.Namespaces, false
	if len(names) == 0 {
		names, more = s.gate.server.Namespaces(maxNamespaces)
	}
	for name, until := range s.denied {
		if !now.Before(until) {
			delete(s.denied, name)
		}
	}
	asked := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !s.denied[name].IsZero() })
	var mu sync.Mutex
	var seen []string
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsInFlight)
	for _, name := range asked {
		group.Go(func() error {
			may, err := s.mayFollow(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			if may {
				seen = append(seen, name)
			} else if err == nil {
				s.denied[name] = now.Add(deniedFor)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return access{}, err
	}
	slices.Sort(seen)
	known := access{sees: ui.TheseNamespaces(seen), scope: "namespace " + strings.Join(seen, ", ")}
	switch {
	case len(seen) == 0:
		known.scope = "no namespace"
		known.notice = "You may not list and watch ManagedResources in any namespace that has ManagedResources. " +
			"Open one that you may get at #/mr/NAMESPACE/NAME."
	case len(seen) > 1:
		known.scope = fmt.Sprintf("%d namespaces", len(seen))
	}
	if more {
		known.notice = fmt.Sprintf("You may not list ManagedResources in all namespaces, "+
			"and there are too many namespaces to check each of them: only the first %d were checked. Open one that you may get at #/mr/NAMESPACE/NAME.", maxNamespaces)
	}
	return known, nil
}

// mayFollow reports whether the viewer may list and watch the ManagedResources of a namespace, or of all namespaces
// if it is empty.
func (s *session) mayFollow(ctx context.Context, namespace string) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		if may, err := s.review(ctx, verb, namespace, ""); err != nil || !may {
			return false, err
		}
	}
	return true, nil
}

// review reports whether the viewer may perform a verb on ManagedResources. It uses the viewer's token.
func (s *session) review(ctx context.Context, verb, namespace, name string) (bool, error) {
	if err := s.gate.reviews.Wait(ctx); err != nil {
		return false, fmt.Errorf("check your permissions: %w", context.DeadlineExceeded)
	}
	asked := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: resourcesv1alpha1.GroupName, Resource: "managedresources", Verb: verb, Namespace: namespace, Name: name,
		},
	}}
	answer, err := s.asks.Create(ctx, asked, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return false, &refusedError{&ui.DeniedError{
			Code:   http.StatusUnauthorized,
			Reason: "The cluster does not accept this token: it may have expired, or belong to another cluster.",
		}}
	case apierrors.IsForbidden(err):
		return false, &ui.DeniedError{Code: http.StatusForbidden, Reason: "The cluster does not allow you to review your own permissions " +
			"(create selfsubjectaccessreviews, which the ClusterRole system:basic-user allows)."}
	case err != nil && s.console == nil: // the cluster has not accepted these tokens yet, so do not reveal anything about it
		return false, &ui.DeniedError{
			Code: http.StatusServiceUnavailable, Reason: "The cluster cannot check your permissions: try again in a moment.",
		}
	case err != nil:
		return false, fmt.Errorf("check your permissions: %w", err)
	}
	return answer.Status.Allowed, nil
}

// open creates the console that reads with the permissions of the viewer.
func (s *session) open(ctx context.Context) error {
	own := &clusters{source: s.config}
	if target := s.gate.options.Target; target != nil {
		own.hasOwnTarget = true
		if s.tokens.target != "" {
			own.target = withToken(target, s.tokens.target, s.gate.options.Version)
		}
	}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	opened := console.New(streams, s.gate.options.Version, own)
	opened.Clock = s.gate.options.Clock
	if _, err := opened.Source(); err != nil { // create it now, before concurrent requests use it
		return err
	}
	if _, err := opened.Target(); err != nil && !errors.Is(err, console.ErrNoTarget) {
		return err
	}
	if client, err := authenticationclient.NewForConfig(s.config); err == nil {
		review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err == nil { // old API servers do not support it
			s.name = review.Status.UserInfo.Username
		}
	}
	s.console = opened
	s.gate.options.Metrics.logins.Inc(resultAccepted)
	return nil
}

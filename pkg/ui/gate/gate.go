// Package gate serves the page to many viewers, each with their own rights: a request brings the token of its viewer, in a header that an
// authenticating proxy sets or in a cookie. Everything that is read of a ManagedResource is read with that token, and what is kept
// of all of them is shown as far as the API server says that the viewer may list and watch them. The credentials of the program that
// serves the page are never used.
package gate

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/ui"
)

// What is done for all viewers at the same time, and for one of them: the program has more important things to do.
const (
	mostReads, mostReadsOfOne     = 2, 1
	mostStreams, mostStreamsOfOne = 64, 8
	// mostNamespaces is of how many namespaces the API server is asked whether a viewer may see them who may not see all.
	mostNamespaces = 500
	// reviewsPerSecond and reviewsAtOnce bound how often the API server is asked what viewers may see.
	reviewsPerSecond, reviewsAtOnce = 50, 500
)

// Options say what is served.
type Options struct {
	// Source and Target are how the clusters are reached, without credentials: rest.AnonymousClientConfig. Target is nil if the
	// objects are in the cluster with the ManagedResources.
	Source, Target *rest.Config
	// Namespaces are those whose ManagedResources are known; empty for all.
	Namespaces []string
	Version    string
	Clock      clock.WithTicker
	Metrics    Metrics
}

// Gate serves the page.
type Gate struct {
	options  Options
	server   *ui.Server
	sessions *sessions
	entrance *entrance
	reviews  flowcontrol.RateLimiter
}

// New returns a gate. Its Handler serves the page, and FollowInformer has it know ManagedResources.
func New(options Options) (*Gate, error) {
	for _, config := range []*rest.Config{options.Source, options.Target} {
		if config != nil && (config.BearerToken != "" || config.BearerTokenFile != "" || config.Username != "" || len(config.CertData) > 0 ||
			config.CertFile != "" || config.ExecProvider != nil || config.AuthProvider != nil) {
			return nil, fmt.Errorf("the page was to be served with credentials for %s, which are not those of its viewers", config.Host)
		}
	}
	g := &Gate{
		options: options, sessions: newSessions(options.Clock, options.Metrics), entrance: newEntrance(),
		reviews: flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewsAtOnce),
	}
	login := "token"
	if options.Target != nil {
		login = "tokens"
	}
	var err error
	g.server, err = ui.NewShared(ui.SharedOptions{
		Viewer: g.viewer, Program: "resource-manager", Version: options.Version, Host: options.Source.Host, Login: login,
		Namespaces: options.Namespaces, Clock: options.Clock,
		Reads: mostReads, Streams: mostStreams,
	})
	return g, err
}

// FollowInformer has ManagedResources known until the context ends.
func (g *Gate) FollowInformer(ctx context.Context, informer ui.Informer) error {
	return g.server.FollowInformer(ctx, informer)
}

// Handler serves the page, and lets viewers in and out.
func (g *Gate) Handler() http.Handler {
	pages := g.server.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/login":
			g.post(w, r, g.login)
		case "/api/logout":
			g.post(w, r, g.logout)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// viewer returns who sent a request, and what they may see at the moment.
func (g *Gate) viewer(r *http.Request) (*ui.Viewer, error) {
	if !g.server.Loaded() {
		return nil, errNotYet
	}
	if ui.FromElsewhere(r) {
		return nil, &ui.DeniedError{Code: http.StatusForbidden, Reason: "a page of another server may not ask for this"}
	}
	given, byCookie, err := tokensOf(r)
	if err != nil {
		return nil, err
	}
	s, known, err := g.enter(r, given)
	if err != nil {
		return nil, err
	}
	return &ui.Viewer{
		Console: s.console, Sees: known.sees, Name: s.name, Scope: known.scope, Notice: known.notice, CanLeave: byCookie, Bounds: s.bounds,
		MayGet: func(ctx context.Context, name types.NamespacedName) (bool, error) {
			return s.review(ctx, "get", name.Namespace, name.Name)
		},
	}, nil
}

// enter returns the session of tokens, and what they may see now. It begins one if there is none, if not too many were begun lately, and
// keeps it if the cluster accepts the tokens: others do not take the place of a viewer.
func (g *Gate) enter(r *http.Request, given tokens) (*session, access, error) {
	s := g.sessions.find(given)
	isKnown := s != nil
	if !isKnown {
		address, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			address = r.RemoteAddr
		}
		if !g.entrance.admits(address) {
			g.options.Metrics.logins.Inc(resultLimited)
			return nil, access{}, &ui.DeniedError{Code: http.StatusTooManyRequests, Reason: "too many log in at once: try again in a few seconds"}
		}
		if s, err = g.newSession(given); err != nil {
			return nil, access{}, err
		}
	}
	known, err := s.access(r.Context())
	switch {
	case err != nil:
		g.dismiss(s, err)
		return nil, access{}, err
	case !isKnown:
		s = g.sessions.add(s)
	}
	return s, known, nil
}

// dismiss forgets a session whose token is not accepted, and counts that.
func (g *Gate) dismiss(s *session, err error) {
	if isRefused(err) {
		g.sessions.remove(s)
		g.options.Metrics.logins.Inc(resultRefused)
	}
}

// Sweep forgets the tokens of those who have not asked for anything for a while. It is called now and then.
func (g *Gate) Sweep() { g.sessions.sweep() }

// SweepPeriod is how often that is due.
const SweepPeriod = time.Minute

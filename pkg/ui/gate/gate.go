// Package gate serves the page to many viewers, each with their own permissions. A request contains the token of its
// viewer, in a
// header that an authenticating proxy sets, or in a cookie. The details of a ManagedResource are read with that
// token. The cached
// summaries are shown only as far as the API server allows the viewer to list and watch ManagedResources. The page
// never uses the
// credentials of the program that serves it.
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

// Limits of concurrent work for all viewers and for one viewer, because the program has more important work.
const (
	maxReads, maxReadsOfOne     = 2, 1
	maxStreams, maxStreamsOfOne = 64, 8
	// maxNamespaces is the maximum number of namespaces to review for a viewer who may not see all namespaces.
	maxNamespaces = 500
	// reviewsPerSecond and reviewsAtOnce limit the access reviews that are sent to the API server.
	reviewsPerSecond, reviewsAtOnce = 50, 500
)

// Options specify the page.
type Options struct {
	// Source and Target are the configurations for the clusters, without credentials (rest.AnonymousClientConfig).
	// Target is nil if
	// the objects are in the cluster with the ManagedResources.
	Source, Target *rest.Config
	// Namespaces are the namespaces with known ManagedResources. It is empty for all.
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
	limiter  *loginLimiter
	reviews  flowcontrol.RateLimiter
}

// New returns a gate. Its Handler serves the page. FollowInformer provides the ManagedResources.
func New(options Options) (*Gate, error) {
	for _, config := range []*rest.Config{options.Source, options.Target} {
		if config != nil && (config.BearerToken != "" || config.BearerTokenFile != "" || config.Username != "" || len(config.CertData) > 0 ||
			config.CertFile != "" || config.ExecProvider != nil || config.AuthProvider != nil) {
			return nil, fmt.Errorf("the page must be served without credentials for %s, because it uses those of its viewers", config.Host)
		}
	}
	g := &Gate{
		options: options, sessions: newSessions(options.Clock, options.Metrics), limiter: newLoginLimiter(),
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
		Reads: maxReads, Streams: maxStreams,
	})
	return g, err
}

// FollowInformer reads ManagedResources from an informer until the context is canceled.
func (g *Gate) FollowInformer(ctx context.Context, informer ui.Informer) error {
	return g.server.FollowInformer(ctx, informer)
}

// Handler serves the page, the login and the logout.
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

// viewer returns the viewer who sent a request, with the current permissions.
func (g *Gate) viewer(r *http.Request) (*ui.Viewer, error) {
	if !g.server.Loaded() {
		return nil, errNotYet
	}
	if ui.IsCrossSite(r) {
		return nil, &ui.DeniedError{Code: http.StatusForbidden, Reason: "requests from pages of other servers are not allowed"}
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

// enter returns the session of tokens, with the current permissions. If there is none, enter creates one, unless too
// many were created
// recently. It keeps a new session only if the cluster accepts the tokens, so that invalid tokens do not displace
// viewers.
func (g *Gate) enter(r *http.Request, given tokens) (*session, access, error) {
	s := g.sessions.find(given)
	isKnown := s != nil
	if !isKnown {
		address, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			address = r.RemoteAddr
		}
		if !g.limiter.admits(address) {
			g.options.Metrics.logins.Inc(resultLimited)
			return nil, access{}, &ui.DeniedError{Code: http.StatusTooManyRequests, Reason: "too many logins at once: try again in a few seconds"}
		}
		if s, err = g.newSession(given); err != nil {
			return nil, access{}, err
		}
	}
	known, err := s.access(r.Context())
	switch {
	case err != nil:
		g.removeIfRefused(s, err)
		return nil, access{}, err
	case !isKnown:
		s = g.sessions.add(s)
	}
	return s, known, nil
}

// removeIfRefused removes a session if the cluster refuses its token, and counts that.
func (g *Gate) removeIfRefused(s *session, err error) {
	if isRefused(err) {
		g.sessions.remove(s)
		g.options.Metrics.logins.Inc(resultRefused)
	}
}

// Sweep removes sessions that were not used for a while. Call it every SweepPeriod.
func (g *Gate) Sweep() { g.sessions.sweep() }

// SweepPeriod is the interval between calls of Sweep.
const SweepPeriod = time.Minute

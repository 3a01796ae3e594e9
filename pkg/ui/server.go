// Package ui serves a web page that shows ManagedResources live: their states, their objects, and why they are not
// ready. It never
// writes, and uses the same code as the command line.
package ui

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/cli/watch"
)

const (
	// readTimeout limits the time to read a part of a ManagedResource. errSlow reports that it was exceeded.
	readTimeout = time.Minute
	// writeTimeout limits the time to send a response.
	writeTimeout = 30 * time.Second
	// maxReads limits the concurrent reads of parts, for all pages.
	maxReads = 8
	// maxStreams limits the number of concurrent event streams.
	maxStreams = 64
)

// Options configure a server for one viewer, who may see everything that is listed.
type Options struct {
	// Console accesses the clusters with the permissions of the viewer.
	Console *console.Console
	// Choice and Namespace select the listed ManagedResources. Namespace is empty for all.
	Choice    console.Choice
	Namespace string
	// Scope describes the selection to the viewer, such as "all namespaces".
	Scope string
}

// SharedOptions configure a server for many viewers.
type SharedOptions struct {
	// Viewer returns the viewer of a request, or a DeniedError. It is called for each request, and again while changes are streamed.
	Viewer func(r *http.Request) (*Viewer, error)
	// Program and Version identify the serving program. Host is the address of the API server.
	Program, Version, Host string
	// Namespaces are the namespaces that are shown. It is empty for all.
	Namespaces []string
	// Login is the kind of login for viewers who are not logged in (see Refusal). It is empty if there is no login.
	Login string
	Clock clock.WithTicker
	// Reads and Streams limit the concurrent reads of parts of ManagedResources and the concurrent event streams, for all viewers.
	Reads, Streams int
}

// Server serves the page and its data.
type Server struct {
	shared SharedOptions
	// follow follows ManagedResources until the context is canceled. It is nil if an informer does that.
	follow func(context.Context)
	store  *store
	assets assets
	// epoch distinguishes this server from a previous one.
	epoch   string
	reads   chan struct{}
	streams chan struct{}
}

// New returns a server for one viewer. Call Run to follow ManagedResources.
func New(options Options) (*Server, error) {
	source, err := options.Console.Source()
	if err != nil {
		return nil, err
	}
	if _, err := options.Console.Target(); err != nil { // set up before concurrent requests use it
		return nil, err
	}
	options.Choice.AllNamespaces = options.Namespace == ""
	selected, err := options.Choice.Options(options.Namespace)
	if err != nil {
		return nil, err
	}
	viewer := &Viewer{Console: options.Console, Sees: AllNamespaces(), Scope: options.Scope, Bounds: NewBounds(maxReads, maxStreams)}
	if options.Namespace != "" {
		viewer.Sees = TheseNamespaces([]string{options.Namespace})
		viewer.MayGet = func(context.Context, types.NamespacedName) (bool, error) { return true, nil } // the store has no others
	}
	server, err := NewShared(SharedOptions{
		Viewer: func(*http.Request) (*Viewer, error) { return viewer, nil }, Program: "kubectl mr", Version: options.Console.Version,
		Host: source.Host, Clock: options.Console.Clock, Reads: maxReads, Streams: maxStreams,
	})
	if err != nil {
		return nil, err
	}
	follow := watch.Watcher[*record]{
		Name: "ui", Source: source, Choice: options.Choice, Options: selected, Summarize: recordOf, Sink: server.store,
	}
	server.follow = follow.Run
	return server, nil
}

// NewShared returns a server for many viewers. Call FollowInformer to follow ManagedResources.
func NewShared(options SharedOptions) (*Server, error) {
	files, err := loadAssets()
	if err != nil {
		return nil, err
	}
	return &Server{
		shared: options, store: newStore(options.Clock), assets: files,
		epoch: rand.Text(), reads: make(chan struct{}, options.Reads), streams: make(chan struct{}, options.Streams),
	}, nil
}

// Run follows ManagedResources until the context is canceled.
func (s *Server) Run(ctx context.Context) { s.follow(ctx) }

// Handler serves everything. Paths below /api/ require a viewer; the rest is public.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", s.assets)
	mux.Handle("GET /assets/", s.assets)
	mux.HandleFunc("GET /api/about", s.as(s.serveAbout))
	mux.HandleFunc("GET /api/changes", s.as(s.serveChanges))
	mux.HandleFunc("GET /api/activity", s.as(s.serveActivity))
	for name, part := range map[string]part{"summary": nil, "objects": partObjects, "why": partWhy, "diff": partDiff, "events": partEvents} {
		mux.HandleFunc("GET /api/resources/{namespace}/{name}/"+name, s.as(s.servePart(part)))
	}
	mux.HandleFunc("GET /api/resources/{namespace}/{name}/history", s.as(s.serveHistory))
	mux.HandleFunc("GET /api/resources/{namespace}/{name}/inventory", s.as(s.serveInventory))
	return Secure(mux)
}

// as determines the viewer of a request.
func (s *Server) as(serve func(http.ResponseWriter, *http.Request, *Viewer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		viewer, err := s.shared.Viewer(r)
		if err != nil {
			s.refuse(w, r, nil, err)
			return
		}
		serve(w, r, viewer)
	}
}

// policy allows the page to load only its own files, and forbids framing it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; " +
	"base-uri 'none'; form-action 'none'"

// SetHeaders sets headers that disable browser features that the page does not need.
func SetHeaders(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	header.Set("Cache-Control", "no-store")
}

// Secure sets these headers, and rejects requests other than reads.
func Secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		SetHeaders(header)
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
			return
		}
		if r.ContentLength != 0 {
			header.Set("Connection", "close") // the rest of the body is not read
			http.Error(w, "request body not allowed", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// IsCrossSite reports whether a page of another server sent the request, by the headers of browsers
// (https://www.w3.org/TR/fetch-metadata). Other clients do not send them.
func IsCrossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return true
}

// Word describes how a state, a health or a sync state is shown.
type Word struct {
	Word string `json:"word"`
	// Tone is good, bad, busy, faint or plain.
	Tone string `json:"tone"`
	Well bool   `json:"well"`
}

// Meaning describes all words. It is the same for all viewers.
type Meaning struct {
	// States are the words for ManagedResources, the most severe first. Healths and Syncs are the words for objects.
	States  []Word `json:"states"`
	Healths []Word `json:"healths"`
	Syncs   []Word `json:"syncs"`
}

func meaningOfWords() Meaning {
	meaning := Meaning{Syncs: []Word{
		{string(NotApplied), "bad", false}, {string(Drifted), "busy", false}, {string(NotSeen), "faint", false}, {string(Synced), "good", true},
	}}
	for _, word := range state.Words {
		meaning.States = append(meaning.States, Word{string(word), toneOf(word.Style()), word.IsWell()})
	}
	for _, word := range snapshot.Healths {
		meaning.Healths = append(meaning.Healths, Word{string(word), toneOf(word.Style()), word.IsWell()})
	}
	return meaning
}

// About describes the server and the viewer.
type About struct {
	// Program is the program that serves the page.
	Program string `json:"program"`
	Version string `json:"version"`
	Host    string `json:"host"`
	Scope   string `json:"scope"`
	// User is the name of the viewer, if known. CanLeave is set if the viewer can log out.
	User     string `json:"user,omitempty"`
	CanLeave bool   `json:"canLeave,omitempty"`
}

func (s *Server) serveAbout(w http.ResponseWriter, r *http.Request, v *Viewer) {
	s.answer(w, r, About{
		Program: s.shared.Program, Version: s.shared.Version, Host: console.HostOf(s.shared.Host), Scope: v.Scope, User: v.Name, CanLeave: v.CanLeave,
	})
}

func (s *Server) serveActivity(w http.ResponseWriter, r *http.Request, v *Viewer) {
	s.serveRead(w, r, v, func(ctx context.Context) (any, error) { return s.readActivities(ctx, v) })
}

// nameIn returns the ManagedResource in the path of a request.
func (s *Server) nameIn(r *http.Request) (types.NamespacedName, error) {
	name := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if len(validation.IsDNS1123Label(name.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(name.Name)) > 0 {
		return name, apierrors.NewBadRequest(fmt.Sprintf("%q is not a valid name of a ManagedResource", name))
	}
	if served := s.shared.Namespaces; len(served) > 0 && !slices.Contains(served, name.Namespace) {
		return name, &DeniedError{
			Code: http.StatusForbidden, Reason: fmt.Sprintf("this resource-manager does not watch namespace %s", name.Namespace),
		}
	}
	return name, nil
}

func (s *Server) servePart(part part) func(http.ResponseWriter, *http.Request, *Viewer) {
	return func(w http.ResponseWriter, r *http.Request, v *Viewer) {
		name, err := s.nameIn(r)
		if err != nil {
			s.refuse(w, r, v, err)
			return
		}
		s.serveRead(w, r, v, func(ctx context.Context) (any, error) {
			return v.read(ctx, name, s.store.versionOf(name), part)
		})
	}
}

// serveRead reads from the clusters and sends the result. It limits concurrent reads.
func (s *Server) serveRead(w http.ResponseWriter, r *http.Request, v *Viewer, read func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	free, err := take(ctx, v.Bounds.reads, s.reads) // the viewer's own limit first, so that a waiting viewer does not block others
	if err != nil {
		s.refuse(w, r, v, err)
		return
	}
	defer free()
	answer, err := read(ctx)
	if err != nil {
		s.refuse(w, r, v, err)
		return
	}
	s.answer(w, r, answer)
}

// serveHistory sends the observed changes.
func (s *Server) serveHistory(w http.ResponseWriter, r *http.Request, v *Viewer) {
	s.serveNoted(w, r, v, func(name types.NamespacedName) any { return s.store.historyOf(name) })
}

// serveInventory sends the objects that are known without requests, for pages that wait for the rest.
func (s *Server) serveInventory(w http.ResponseWriter, r *http.Request, v *Viewer) {
	s.serveNoted(w, r, v, func(name types.NamespacedName) any { return inventoryOf(s.store.inventoryOf(name)) })
}

// serveNoted sends data in memory about a ManagedResource, if the viewer may see it.
func (s *Server) serveNoted(w http.ResponseWriter, r *http.Request, v *Viewer, noted func(types.NamespacedName) any) {
	name, err := s.nameIn(r)
	if err == nil {
		err = v.sees(r.Context(), name)
	}
	if err != nil {
		s.refuse(w, r, v, err)
		return
	}
	s.answer(w, r, noted(name))
}

// Refusal is the body of an error response.
type Refusal struct {
	Error string `json:"error"`
	// Gone is set if the ManagedResource does not exist. Forbidden is set if the viewer may not read it.
	Gone      bool `json:"gone,omitempty"`
	Forbidden bool `json:"forbidden,omitempty"`
	// Login is "token" if the page should ask for a token, "tokens" for the tokens of both clusters, or else empty.
	Login string `json:"login,omitempty"`
}

// errSlow is the message for reads that exceed readTimeout.
var errSlow = errors.New("the cluster has not answered within a minute: it may be slow, overloaded or hard to reach")

// refuse sends an error. v is nil if the client is not logged in.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, v *Viewer, err error) {
	code, refusal := codeOf(err)
	if refusal.Error = err.Error(); v != nil {
		refusal.Error = v.explain(err)
	}
	switch code {
	case http.StatusGatewayTimeout:
		refusal.Error = errSlow.Error()
	case http.StatusUnauthorized:
		refusal.Login = s.shared.Login
	}
	s.send(w, r, code, refusal)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, value any) {
	s.send(w, r, http.StatusOK, value)
}

// send sends a value as JSON, unless the page has it already.
func (s *Server) send(w http.ResponseWriter, r *http.Request, code int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "the response cannot be encoded", http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // not supported by the writers of tests
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	header := w.Header()
	header.Set("ETag", tag)
	header.Set("Vary", "Accept-Encoding")
	if code == http.StatusOK && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", "application/json; charset=utf-8")
	if !acceptsGzip(r) {
		w.WriteHeader(code)
		_, _ = w.Write(body) // the client may have disconnected
		return
	}
	header.Set("Content-Encoding", "gzip")
	w.WriteHeader(code)
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return
	}
	_, _ = zipped.Write(body)
	_ = zipped.Close()
}

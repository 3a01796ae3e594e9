// Package ui is a page that shows ManagedResources live: how they are, what they own, why one is not ready. It reads and never
// writes, and decides with the same code as the command line.
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
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/feed"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

const (
	// readTimeout bounds how long a part of a ManagedResource is read; errSlow tells of it.
	readTimeout = time.Minute
	// writeTimeout bounds how long a page may take to receive what it asked for.
	writeTimeout = 30 * time.Second
	// mostReads is how many parts are read at the same time, for all pages.
	mostReads = 8
	// mostStreams is how many pages are told what changes at the same time.
	mostStreams = 64
)

// Options say what is shown.
type Options struct {
	// Console reaches the clusters, with the rights of whoever looks at the page.
	Console *console.Console
	// Choice and Namespace say which ManagedResources are listed. The namespace is empty for all.
	Choice    console.Choice
	Namespace string
	// Scope says so for people, such as "all namespaces".
	Scope string
}

// Server serves the page and what it shows.
type Server struct {
	options Options
	source  *console.Source
	// selected are the options by which ManagedResources are listed.
	selected []client.ListOption
	store    *store
	assets   assets
	// epoch tells this server from a former one.
	epoch   string
	reads   chan struct{}
	streams chan struct{}

	activity struct {
		sync.Mutex
		last *Activities
		at   time.Time
	}
}

// New returns a server. Run has it follow ManagedResources.
func New(options Options) (*Server, error) {
	source, err := options.Console.Source()
	if err != nil {
		return nil, err
	}
	if _, err := options.Console.Target(); err != nil { // so that nobody has to set it up later, at the same time as others
		return nil, err
	}
	options.Choice.AllNamespaces = options.Namespace == ""
	selected, err := options.Choice.Options(options.Namespace)
	if err != nil {
		return nil, err
	}
	files, err := loadAssets()
	if err != nil {
		return nil, err
	}
	return &Server{
		options: options, source: source, selected: selected, store: newStore(options.Console.Clock), assets: files,
		epoch: rand.Text(), reads: make(chan struct{}, mostReads), streams: make(chan struct{}, mostStreams),
	}, nil
}

// Run follows ManagedResources until the context ends.
func (s *Server) Run(ctx context.Context) {
	follow := feed.Feed[*record]{
		Name: "ui", Source: s.source, Choice: s.options.Choice, Options: s.selected, Summarize: recordOf, Sink: s.store,
	}
	follow.Run(ctx)
}

// Handler serves everything. What is below /api/ is only for those who may see what the console may read: the caller has to check
// that. The rest is the same for everybody.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", s.assets)
	mux.Handle("GET /assets/", s.assets)
	mux.HandleFunc("GET /api/about", s.serveAbout)
	mux.HandleFunc("GET /api/changes", s.serveChanges)
	mux.HandleFunc("GET /api/activity", s.serveActivity)
	for name, part := range map[string]part{"summary": nil, "objects": partObjects, "why": partWhy, "diff": partDiff, "events": partEvents} {
		mux.HandleFunc("GET /api/resources/{namespace}/{name}/"+name, s.servePart(part))
	}
	mux.HandleFunc("GET /api/resources/{namespace}/{name}/history", s.serveHistory)
	mux.HandleFunc("GET /api/resources/{namespace}/{name}/inventory", s.serveInventory)
	return Secure(mux)
}

// policy lets the page load nothing but its own files, and nobody put it into a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; " +
	"base-uri 'none'; form-action 'none'"

// Secure sets the headers that keep browsers from doing what the page does not need.
func Secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		header.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "this only reads", http.StatusMethodNotAllowed)
			return
		}
		if r.ContentLength != 0 {
			header.Set("Connection", "close") // nobody waits for the rest
			http.Error(w, "a request has no body here", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Word is how a state, a health or a sync state is shown.
type Word struct {
	Word string `json:"word"`
	// Tone is good, bad, busy, faint or plain.
	Tone string `json:"tone"`
	Well bool   `json:"well"`
}

// Meaning is what words mean, which is the same for everybody.
type Meaning struct {
	// States are the words for ManagedResources, the gravest first; Healths those for objects, and Syncs.
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

// About is what a page shows besides ManagedResources.
type About struct {
	Version string `json:"version"`
	Host    string `json:"host"`
	Scope   string `json:"scope"`
}

func (s *Server) serveAbout(w http.ResponseWriter, r *http.Request) {
	host := s.source.Host
	if parsed, err := url.Parse(host); err == nil && parsed.Host != "" {
		host = parsed.Host
	}
	s.answer(w, r, About{Version: s.options.Console.Version, Host: host, Scope: s.options.Scope})
}

func (s *Server) serveActivity(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	found, err := s.readActivities(ctx)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.answer(w, r, found)
}

// nameIn returns the ManagedResource that a path names.
func nameIn(r *http.Request) (types.NamespacedName, error) {
	name := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if len(validation.IsDNS1123Label(name.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(name.Name)) > 0 {
		return name, apierrors.NewBadRequest(fmt.Sprintf("%q is no name of a ManagedResource", name))
	}
	return name, nil
}

func (s *Server) servePart(part part) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, err := nameIn(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
		defer cancel()
		select {
		case s.reads <- struct{}{}:
			defer func() { <-s.reads }()
		case <-ctx.Done():
			s.refuse(w, r, ctx.Err())
			return
		}
		answer, err := s.read(ctx, name, part)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		s.answer(w, r, answer)
	}
}

func (s *Server) serveHistory(w http.ResponseWriter, r *http.Request) {
	name, err := nameIn(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.answer(w, r, s.store.historyOf(name))
}

// serveInventory answers at once with what is known of a tree already, for pages that wait for the rest.
func (s *Server) serveInventory(w http.ResponseWriter, r *http.Request) {
	name, err := nameIn(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	entries, _ := s.store.inventoryOf(name)
	s.answer(w, r, inventoryOf(entries))
}

// Refusal says why there is no answer.
type Refusal struct {
	Error string `json:"error"`
	// Gone says that there is no such ManagedResource, Forbidden that it may not be read.
	Gone      bool `json:"gone,omitempty"`
	Forbidden bool `json:"forbidden,omitempty"`
}

// errSlow is told of what is given up.
var errSlow = errors.New("the cluster has not answered within a minute: it may be slow, overloaded or hard to reach")

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal, code := Refusal{Error: s.explain(err)}, http.StatusBadGateway
	switch {
	case apierrors.IsBadRequest(err):
		code = http.StatusBadRequest
	case apierrors.IsNotFound(err) && !console.HasNoKind(err):
		refusal.Gone, code = true, http.StatusNotFound
	case apierrors.IsForbidden(err):
		refusal.Forbidden, code = true, http.StatusForbidden
	case errors.Is(err, context.DeadlineExceeded):
		refusal.Error, code = errSlow.Error(), http.StatusGatewayTimeout
	}
	s.send(w, r, code, refusal)
}

// explain says what is wrong, and what to do.
func (s *Server) explain(err error) string { return s.options.Console.Explain(err).Error() }

func (s *Server) answer(w http.ResponseWriter, r *http.Request, value any) {
	s.send(w, r, http.StatusOK, value)
}

// send sends a value as JSON, unless the page has the same one already.
func (s *Server) send(w http.ResponseWriter, r *http.Request, code int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "the answer cannot be encoded", http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // writers of tests have none
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
	if !takesGzip(r) {
		w.WriteHeader(code)
		_, _ = w.Write(body) // who went away needs no answer
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

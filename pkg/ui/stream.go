package ui

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

const (
	// quiet is how long changes are collected before a page is told.
	quiet = 100 * time.Millisecond
	// heartbeat is how often a page is told that there is nothing new, so that it notices a connection that is lost.
	heartbeat = 10 * time.Second
)

// tones are what styles are called in pages.
var tones = map[screen.Style]string{screen.Good: "good", screen.Bad: "bad", screen.Busy: "busy", screen.Faint: "faint"}

func toneOf(style screen.Style) string {
	if tone, known := tones[style]; known {
		return tone
	}
	return "plain"
}

// serveChanges tells a page what there is, and then everything that changes, as server-sent events. The page says by "since" what it
// has been told already, in the words of an event's id.
func (s *Server) serveChanges(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.send(w, r, http.StatusServiceUnavailable, Refusal{Error: "too many pages are open: close some"})
		return
	}
	var sequence uint64
	if epoch, text, found := strings.Cut(r.URL.Query().Get("since"), "."); found && epoch == s.epoch {
		sequence, _ = strconv.ParseUint(text, 10, 64) // 0 is all
	}
	stream := newStream(w, r)
	clock := s.options.Console.Clock
	for {
		news, changed := s.store.since(sequence, s.explain)
		sequence = news.Sequence
		if err := stream.send(fmt.Sprintf("%s.%d", s.epoch, sequence), news); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-clock.After(heartbeat):
			continue
		case <-changed:
		}
		select {
		case <-r.Context().Done():
			return
		case <-clock.After(quiet):
		}
	}
}

// stream sends events.
type stream struct {
	io.Writer
	zipped *gzip.Writer
	http   *http.ResponseController
}

func newStream(w http.ResponseWriter, r *http.Request) *stream {
	s := &stream{Writer: w, http: http.NewResponseController(w)}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("X-Accel-Buffering", "no") // proxies are to pass events on at once
	header.Set("Vary", "Accept-Encoding")
	if takesGzip(r) {
		header.Set("Content-Encoding", "gzip")
		s.zipped, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
		s.Writer = s.zipped
	}
	return s
}

func (s *stream) send(id string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_ = s.http.SetWriteDeadline(time.Now().Add(writeTimeout)) // writers of tests have none
	if _, err := fmt.Fprintf(s, "id: %s\ndata: %s\n\n", id, body); err != nil {
		return err
	}
	if s.zipped != nil {
		if err := s.zipped.Flush(); err != nil {
			return err
		}
	}
	return s.http.Flush()
}

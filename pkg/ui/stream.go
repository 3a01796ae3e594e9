package ui

import (
	"cmp"
	"compress/gzip"
	"context"
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
	// quiet is how long changes are collected before they are sent to a page.
	quiet = 100 * time.Millisecond
	// heartbeat is the interval of events without changes, so that a page notices a lost connection.
	heartbeat = 10 * time.Second
	// turn is how long a page waits until another page is closed, which may be its own previous connection.
	turn = 2 * time.Second
	// viewerTimeout limits the time to determine the permissions of a viewer.
	viewerTimeout = 15 * time.Second
)

// tones are the names of styles in pages.
var tones = map[screen.Style]string{screen.Good: "good", screen.Bad: "bad", screen.Busy: "busy", screen.Faint: "faint"}

func toneOf(style screen.Style) string {
	if tone, known := tones[style]; known {
		return tone
	}
	return "plain"
}

// serveChanges sends the current rows, and then all changes, as server-sent events. The query parameter "since"
// contains the id of
// the last event that the page received. The viewer and their permissions are determined again for each event,
// because they may have
// changed.
func (s *Server) serveChanges(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ctx, cancel := context.WithTimeout(r.Context(), turn)
	free, err := take(ctx, v.Bounds.streams, s.streams)
	cancel()
	if err != nil {
		s.send(w, r, http.StatusServiceUnavailable, Refusal{Error: "too many pages are open: close some"})
		return
	}
	defer free()
	sequence := s.resume(r.URL.Query().Get("since"), v)
	stream := newStream(w, r)
	for {
		news, changed := s.store.since(sequence, v.Sees, v.explain)
		news.Notice = v.Notice
		if err := stream.send(fmt.Sprintf("%s.%s.%d", s.epoch, v.Sees.key, news.Sequence), news); err != nil {
			return
		}
		sequence = news.Sequence
		since := int64(0)
		next := s.wait(r, changed, func(lost error) error {
			now := seconds(s.shared.Clock.Now())
			since = cmp.Or(since, now)
			return stream.send(fmt.Sprintf("%s.%s.%d", s.epoch, v.Sees.key, sequence), News{
				Sequence: sequence, Loaded: news.Loaded, Lost: v.explain(lost), LostSince: since, Now: now,
			})
		})
		if next == nil {
			return
		}
		if next.Sees.key != v.Sees.key {
			sequence = 0 // everything again
		}
		v = next
	}
}

// resume returns the sequence from which a page needs changes. It returns 0 for everything, for example if the
// namespaces have changed.
func (s *Server) resume(since string, v *Viewer) (sequence uint64) {
	if text, found := strings.CutPrefix(since, s.epoch+"."+v.Sees.key+"."); found {
		sequence, _ = strconv.ParseUint(text, 10, 64) // 0 means everything
	}
	return sequence
}

// wait waits for a change or a heartbeat, and then returns the viewer. It returns nil if the request ended, or if the
// viewer is no
// longer authorized. While that cannot be determined, it calls lose with the error, which sends it to the page.
func (s *Server) wait(r *http.Request, changed <-chan struct{}, lose func(error) error) *Viewer {
	beat := s.shared.Clock.After(heartbeat)
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-beat:
		case <-changed:
			select {
			case <-r.Context().Done():
				return nil
			case <-s.shared.Clock.After(quiet):
			}
		}
		ctx, cancel := context.WithTimeout(r.Context(), viewerTimeout)
		next, err := s.shared.Viewer(r.WithContext(ctx))
		cancel()
		if err == nil {
			return next
		}
		if code, _ := codeOf(err); code == http.StatusUnauthorized || code == http.StatusForbidden || lose(err) != nil {
			return nil
		}
		beat, changed = s.shared.Clock.After(heartbeat), nil
	}
}

// stream sends server-sent events.
type stream struct {
	io.Writer
	zipped *gzip.Writer
	http   *http.ResponseController
}

func newStream(w http.ResponseWriter, r *http.Request) *stream {
	s := &stream{Writer: w, http: http.NewResponseController(w)}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("X-Accel-Buffering", "no") // proxies must forward events immediately
	header.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
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
	_ = s.http.SetWriteDeadline(time.Now().Add(writeTimeout)) // not supported by the writers of tests
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

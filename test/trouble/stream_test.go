package trouble

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// stream describes how the events of one watch are disturbed.
type stream struct {
	// delay is the delay of each event.
	delay time.Duration
	// times is the number of times that each event is passed on. 0 means once.
	times int
	// most is the number of events after which the watch breaks. 0 means never. The last event is passed on only in
	// part.
	most int
	// gate holds events back while it is shut. It may be nil.
	gate *gate
	// sees is called with each event that was passed on. It may be nil.
	sees func(event []byte)
}

// gate holds back events while it is shut. The zero value is open.
type gate struct {
	mu   sync.Mutex
	shut chan struct{}
	// before is the text of the event before which the gate shuts. It may be empty.
	before []byte
}

// close shuts the gate.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

// closeBefore shuts the gate at the first event that contains a text. Earlier events are still passed on.
func (g *gate) closeBefore(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = []byte(text)
}

// open opens the gate.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = nil
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// wait waits until the gate is open for an event, or the context ends.
func (g *gate) wait(ctx context.Context, event []byte) {
	if g == nil {
		return
	}
	g.mu.Lock()
	if g.shut == nil && len(g.before) > 0 && bytes.Contains(event, g.before) {
		g.shut = make(chan struct{})
	}
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return
	}
	select {
	case <-shut:
	case <-ctx.Done():
	}
}

// splitter reads one event.
type splitter func(*bufio.Reader) ([]byte, error)

// splitterOf returns the splitter for the events of a watch.
func splitterOf(header http.Header) splitter {
	if strings.Contains(header.Get("Content-Type"), "protobuf") {
		return splitFrames
	}
	return func(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }
}

// splitFrames reads a frame that is preceded by its length.
func splitFrames(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(4)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(head))
	_, err = io.ReadFull(r, frame)
	return frame, err
}

// splitAnywhere reads the available bytes.
func splitAnywhere(r *bufio.Reader) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	piece := make([]byte, r.Buffered())
	_, err := io.ReadFull(r, piece)
	return piece, err
}

// pass returns a body whose events pass through a stream, until the context ends.
func pass(ctx context.Context, body io.ReadCloser, split splitter, s stream) io.ReadCloser {
	type arrival struct {
		event []byte
		at    time.Time
	}
	arrivals := make(chan arrival, 100_000)
	end := make(chan error, 1)
	go func() {
		defer close(arrivals)
		for reader := bufio.NewReader(body); ; {
			event, err := split(reader)
			if err != nil {
				end <- err
				return
			}
			arrivals <- arrival{event, time.Now()}
		}
	}()
	reader, writer := io.Pipe()
	go func() {
		count := 0
		for arrival := range arrivals {
			if wait := time.Until(arrival.at.Add(s.delay)); wait > 0 {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
				}
			}
			s.gate.wait(ctx, arrival.event)
			if count++; count == s.most {
				_, _ = writer.Write(arrival.event[:len(arrival.event)/2])
				_ = body.Close()
				_ = writer.CloseWithError(io.ErrUnexpectedEOF)
				return
			}
			for range max(s.times, 1) {
				if _, err := writer.Write(arrival.event); err != nil {
					_ = body.Close()
					return
				}
			}
			if s.sees != nil {
				s.sees(arrival.event)
			}
		}
		_ = writer.CloseWithError(<-end) // io.EOF at the end of the watch
	}()
	return &closing{reader, func() { _ = body.Close() }}
}

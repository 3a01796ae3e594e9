package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// connectTimeout is how long a connection through the tunnel may take until it is established.
const connectTimeout = dialTimeout + 5*time.Second

// errorLimit is how many bytes of the answer of an agent are part of an error.
const errorLimit = 1 << 10

// refusedError is the answer of an agent that cannot connect to an address. Another agent is in the same network, so it is not tried.
type refusedError struct{ why string }

func (e refusedError) Error() string { return e.why }

// ServeHTTP serves requests of API servers with the method CONNECT.
func (s *Server) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodConnect {
		http.Error(writer, "this server only supports the method CONNECT", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(request.Context()))
	defer cancel()
	stop := context.AfterFunc(request.Context(), cancel) // the API server may give up before the connection is established
	defer stop()
	agents := s.choose()
	if len(agents) == 0 {
		s.state.metrics.requests.WithLabelValues(resultNoAgent).Inc()
		why := "there is no tunnel to the nodes of the cluster"
		if err := s.Ready(); err != nil {
			why += ": " + err.Error()
		}
		refuse(writer, http.StatusServiceUnavailable, why)
		return
	}
	response, outgoing, err := establish(ctx, cancel, agents, request.Host)
	if err != nil {
		s.state.metrics.requests.WithLabelValues(resultFailed).Inc()
		refuse(writer, http.StatusBadGateway, err.Error())
		return
	}
	defer func() { _ = response.Body.Close() }()
	s.state.metrics.requests.WithLabelValues(resultConnected).Inc()
	if stop() {
		s.join(writer, response.Body, outgoing)
	}
}

// join connects the API server to the stream of an agent, until one of them ends.
func (s *Server) join(writer http.ResponseWriter, from io.Reader, outgoing *heldBody) {
	conn, buffered, err := http.NewResponseController(writer).Hijack()
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = conn.Close() }()
	if !s.opened(conn) {
		return
	}
	defer s.closed(conn)
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	outgoing.release(buffered)
	_ = stream(conn, from) // either side has ended, or the tunnel has
}

// refuse answers with an error. The text is the reason phrase of the status, too, because it is all of the answer that the API server reports to
// its users.
func refuse(writer http.ResponseWriter, status int, text string) {
	conn, _, err := http.NewResponseController(writer).Hijack()
	if err != nil {
		http.Error(writer, text, status)
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s\n", status, phrase(text), text)
}

// phrase returns a text as one line of visible ASCII characters, at most errorLimit of them.
func phrase(text string) string {
	visible := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text)
	return visible[:min(len(visible), errorLimit)]
}

// establish asks agents for a connection to an address, one after the other until one answers. The body of the request is sent once it is released.
func establish(ctx context.Context, cancel context.CancelFunc, agents []*http.ClientConn, address string) (*http.Response, *heldBody, error) {
	timeout := time.AfterFunc(connectTimeout, cancel)
	defer timeout.Stop()
	var errs []error
	for _, agent := range agents {
		body := newHeldBody()
		response, err := ask(ctx, agent, address, body)
		if err == nil {
			return response, body, nil
		}
		_ = body.Close()
		errs = append(errs, err)
		if refused := (refusedError{}); errors.As(err, &refused) || ctx.Err() != nil {
			break
		}
	}
	return nil, nil, fmt.Errorf("connect to %s through the tunnel: %w", address, errors.Join(errs...))
}

// ask asks an agent for a connection.
func ask(ctx context.Context, agent *http.ClientConn, address string, body io.ReadCloser) (*http.Response, error) {
	request := (&http.Request{
		Method: http.MethodConnect, URL: &url.URL{Scheme: "http", Host: address}, Host: address, Header: http.Header{}, Body: body, ContentLength: -1,
	}).WithContext(ctx)
	response, err := agent.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, errorLimit))
	if err != nil {
		return nil, fmt.Errorf("read the answer of the agent: %w", err)
	}
	return nil, refusedError{strings.TrimSpace(string(text))}
}

func (s *Server) opened(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return false
	}
	s.open[conn] = true
	s.state.metrics.connections.Inc()
	return true
}

func (s *Server) closed(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
	s.state.metrics.connections.Dec()
}

// heldBody is the body of a request that starts when it is released. Until then nothing is read from the API server, so that another agent can be
// asked.
type heldBody struct {
	released chan io.Reader
	from     io.Reader
	once     sync.Once
	done     chan struct{}
}

func newHeldBody() *heldBody {
	return &heldBody{released: make(chan io.Reader, 1), done: make(chan struct{})}
}

// release starts the body.
func (b *heldBody) release(from io.Reader) { b.released <- from }

// Read implements [io.Reader].
func (b *heldBody) Read(into []byte) (int, error) {
	if b.from == nil {
		select {
		case b.from = <-b.released:
		case <-b.done:
			return 0, io.ErrClosedPipe
		}
	}
	return b.from.Read(into)
}

// Close implements [io.Closer]. HTTP/2 closes the body of a request that has ended.
func (b *heldBody) Close() error {
	b.once.Do(func() { close(b.done) })
	return nil
}

package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/trellis-k8s/trellis/pkg/ui"
)

// tokenParameter is the query parameter with the one-time token.
const tokenParameter = "token"

// session admits users who have the printed address. An address opens the page once. The browser then has a cookie,
// and another
// address is printed for another browser.
type session struct {
	port int
	// cookie is the value of the cookie. It is valid as long as the program runs.
	cookie string
	// used is called after an address was used.
	used func()

	mu    sync.Mutex
	token string
}

func newSession(port int, used func()) *session {
	return &session{port: port, cookie: rand.Text(), token: rand.Text(), used: used}
}

// url returns the address that opens the page once.
func (s *session) url() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("http://127.0.0.1:%d/?%s=%s", s.port, tokenParameter, s.token)
}

// cookieName contains the port, because browsers send the cookies of a host to all of its ports.
func (s *session) cookieName() string { return "kubectl-mr-" + strconv.Itoa(s.port) }

// guard rejects requests to another host name, by which pages of other servers could access a local server (DNS
// rebinding). It also
// rejects requests for data without the cookie or from pages of other servers.
func (s *session) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isOurs(r.Host) {
			http.Error(w, "this server is only available as 127.0.0.1", http.StatusMisdirectedRequest)
			return
		}
		if s.redeem(r.URL.Query().Get(tokenParameter)) {
			http.SetCookie(w, &http.Cookie{ //nolint:gosec // the page is served over HTTP, only on the loopback interface
				Name: s.cookieName(), Value: s.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			})
			s.used()
		}
		if strings.HasPrefix(r.URL.Path, "/api/") && (!s.knows(r) || ui.IsCrossSite(r)) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"open the last address that kubectl mr ui printed"}`)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *session) isOurs(host string) bool {
	name, port, err := net.SplitHostPort(host)
	return err == nil && port == strconv.Itoa(s.port) && (name == "127.0.0.1" || name == "localhost")
}

// redeem reports whether a token is the current one, and replaces it, so that it can be used only once.
func (s *session) redeem(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return false
	}
	s.token = rand.Text()
	return true
}

func (s *session) knows(r *http.Request) bool {
	for _, cookie := range r.CookiesNamed(s.cookieName()) {
		if subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(s.cookie)) == 1 {
			return true
		}
	}
	return false
}

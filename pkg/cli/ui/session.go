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

// tokenParameter is where the address of the page has what opens it.
const tokenParameter = "token"

// session lets in who has the address that was printed. An address opens the page once; then the browser has a cookie, and another
// address is printed for another browser.
type session struct {
	port int
	// cookie is the value of the cookie, which lives as long as the program.
	cookie string
	// used is called when an address was used.
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

// cookieName has the port, as cookies of a host are for all its ports.
func (s *session) cookieName() string { return "kubectl-mr-" + strconv.Itoa(s.port) }

// guard refuses requests that came by another name, which is how pages of others would get at a local server (DNS rebinding), and
// those for data without the cookie or from pages of others.
func (s *session) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isOurs(r.Host) {
			http.Error(w, "this server is 127.0.0.1 alone", http.StatusMisdirectedRequest)
			return
		}
		if s.redeem(r.URL.Query().Get(tokenParameter)) {
			http.SetCookie(w, &http.Cookie{ //nolint:gosec // it is served by plain HTTP, on the loopback interface alone
				Name: s.cookieName(), Value: s.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			})
			s.used()
		}
		if strings.HasPrefix(r.URL.Path, "/api/") && (!s.knows(r) || ui.FromElsewhere(r)) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"open the address that kubectl mr ui printed last"}`)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *session) isOurs(host string) bool {
	name, port, err := net.SplitHostPort(host)
	return err == nil && port == strconv.Itoa(s.port) && (name == "127.0.0.1" || name == "localhost")
}

// redeem reports whether a token is the present one, which is good for once.
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

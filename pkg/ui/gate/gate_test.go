package gate

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestCredentialsOfTheProgramAreRefused(t *testing.T) {
	for name, config := range map[string]*rest.Config{
		"token": {BearerToken: "x"}, "file": {BearerTokenFile: "/x"}, "certificate": {TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}},
		"password": {Username: "x"}, "program": {ExecProvider: nil, TLSClientConfig: rest.TLSClientConfig{CertFile: "/x"}},
	} {
		for _, options := range []Options{{Source: config}, {Source: &rest.Config{}, Target: config}} {
			if _, err := New(options); err == nil || !strings.Contains(err.Error(), "credentials") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if got := withToken(&rest.Config{Host: "https://here"}, "viewer", "v1"); got.BearerToken != "viewer" || got.UserAgent != "resource-manager/v1 (page)" {
		t.Errorf("%+v", got)
	}
}

// TestClusterThatIsNotThere checks that a client that has not been admitted gets no information about a cluster that does not
// respond.
func TestClusterThatIsNotThere(t *testing.T) {
	page, err := New(Options{Source: &rest.Config{Host: "https://127.0.0.1:1"}, Clock: clock.RealClock{}, Metrics: NewMetrics(prometheus.NewRegistry())})
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(page.Handler())
	defer served.Close()
	for _, loaded := range []bool{false, true} {
		if loaded {
			go func() { _ = page.FollowInformer(t.Context(), emptyInformer{}) }()
			for patience := time.After(time.Minute); !page.server.Loaded(); {
				select {
				case <-patience:
					t.Fatal("an empty cache is never loaded")
				case <-time.After(time.Millisecond):
				}
			}
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.URL+"/api/about", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer made.up")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable || strings.Contains(string(body), "127.0.0.1") || !strings.Contains(string(body), "try again") {
			t.Errorf("loaded %t: %d %s", loaded, response.StatusCode, body)
		}
		if len(page.sessions.known) > 0 {
			t.Error("a client that was not admitted has a session")
		}
	}
}

// emptyInformer is an informer without objects.
type emptyInformer struct {
	toolscache.ResourceEventHandlerRegistration
}

// AddEventHandler registers a handler.
func (e emptyInformer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return e, nil
}

// RemoveEventHandler removes the handler.
func (emptyInformer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return nil
}

// HasSynced returns true.
func (emptyInformer) HasSynced() bool { return true }

func TestTokensOf(t *testing.T) {
	for name, test := range map[string]struct {
		headers  map[string]string
		want     tokens
		byCookie bool
		fails    bool
	}{
		"nothing":         {nil, tokens{}, true, true},
		"header":          {map[string]string{"Authorization": "Bearer abc"}, tokens{"abc", ""}, false, false},
		"both headers":    {map[string]string{"Authorization": "bearer abc==", "Target-Authorization": "Bearer x.y"}, tokens{"abc==", "x.y"}, false, false},
		"password":        {map[string]string{"Authorization": "Basic abc"}, tokens{}, false, true},
		"cookie":          {map[string]string{"Cookie": "__Host-trellis-token=abc"}, tokens{"abc", ""}, true, false},
		"both cookies":    {map[string]string{"Cookie": "__Host-trellis-token=abc; __Host-trellis-target-token=x"}, tokens{"abc", "x"}, true, false},
		"header wins":     {map[string]string{"Authorization": "Bearer abc", "Cookie": "__Host-trellis-token=other; __Host-trellis-target-token=x"}, tokens{"abc", ""}, false, false},
		"another cookie":  {map[string]string{"Cookie": "trellis-token=abc"}, tokens{}, true, true},
		"a space within":  {map[string]string{"Authorization": "Bearer a b"}, tokens{"a b", ""}, false, true},
		"a sign within":   {map[string]string{"Authorization": "Bearer a=b"}, tokens{"a=b", ""}, false, true},
		"a letter beyond": {map[string]string{"Authorization": "Bearer ä"}, tokens{"ä", ""}, false, true},
		"too long":        {map[string]string{"Authorization": "Bearer " + strings.Repeat("x", longestToken+1)}, tokens{strings.Repeat("x", longestToken+1), ""}, false, true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		for key, value := range test.headers {
			r.Header.Set(key, value)
		}
		got, byCookie, err := tokensOf(r)
		if got != test.want || byCookie != test.byCookie || (err != nil) != test.fails {
			t.Errorf("%s: %+v %t %v", name, got, byCookie, err)
		}
		if err != nil && got.source != "" && strings.Contains(err.Error(), got.source) {
			t.Errorf("%s: the error repeats the token: %v", name, err)
		}
	}
}

func TestIsFromPage(t *testing.T) {
	for name, test := range map[string]struct {
		site, origin string
		want         bool
	}{
		"nothing": {"", "", false}, "same origin": {"same-origin", "", true}, "typed": {"none", "", false}, "same site": {"same-site", "https://page.example:8443", false},
		"another site": {"cross-site", "https://page.example:8443", false}, "old browser": {"", "https://page.example:8443", true},
		"another port": {"", "https://page.example", false}, "no TLS": {"", "http://page.example:8443", false}, "hidden origin": {"", "null", false},
	} {
		r := httptest.NewRequest(http.MethodPost, "https://page.example:8443/api/login", http.NoBody)
		for key, value := range map[string]string{"Sec-Fetch-Site": test.site, "Origin": test.origin} {
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		if got := isFromPage(r); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestSessionsAreBoundedAndForgotten(t *testing.T) {
	now := testingclock.NewFakePassiveClock(start)
	s := newSessions(now, NewMetrics(prometheus.NewRegistry()))
	of := func(i int) tokens { return tokens{source: fmt.Sprint(i)} }
	for i := range maxSessions {
		s.add(&session{tokens: of(i)})
		now.SetTime(now.Now().Add(time.Second))
	}
	first := s.find(of(0))
	if first == nil || s.add(&session{tokens: of(0)}) != first || s.find(tokens{"0", "other"}) != nil || s.find(tokens{"", "0"}) != nil {
		t.Error("a session is not found again, or found for other tokens")
	}
	s.add(&session{tokens: of(maxSessions)})
	if len(s.known) != maxSessions || s.find(of(0)) == nil || s.find(of(1)) != nil {
		t.Errorf("%d sessions, or the removed one is not the least recently used one", len(s.known))
	}
	now.SetTime(now.Now().Add(idle - time.Second))
	s.find(of(0))
	now.SetTime(now.Now().Add(time.Second))
	s.sweep()
	if len(s.known) != 1 || s.find(of(0)) == nil {
		t.Errorf("%d sessions after the idle time", len(s.known))
	}
	s.remove(first)
	if len(s.known) != 0 {
		t.Error("the session is not removed")
	}
}

func TestEntrance(t *testing.T) {
	e := newLoginLimiter()
	admitted := func(address func(int) string) int {
		count := 0
		for i := range 4 * maxAddresses {
			if e.admits(address(i)) {
				count++
			}
		}
		return count
	}
	// The limit grows with the seconds that the loop takes.
	if got := admitted(func(int) string { return "one" }); got < loginsAtOnce || got > loginsAtOnce+loginsPerSecond*60 {
		t.Errorf("%d from one address", got)
	}
	if got := admitted(func(i int) string { return fmt.Sprint(i) }); got < loginsOfAllAtOnce-loginsAtOnce-loginsPerSecond*60 || got > loginsOfAllAtOnce+loginsOfAllOften*60 {
		t.Errorf("%d from many addresses", got)
	}
	if len(e.addresses) > maxAddresses {
		t.Errorf("%d addresses are remembered", len(e.addresses))
	}
}

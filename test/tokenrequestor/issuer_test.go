package tokenrequestor

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/trellis-k8s/trellis/test/kit"
)

// issuer simulates the token API of the API server, whose clock tests cannot set. It issues and reviews tokens by a clock that is ahead
// of the reconciler's by the skew of the server. All other requests are forwarded to the API server.
type issuer struct {
	tb     testing.TB
	clock  *clocktesting.FakeClock
	server *server

	mu sync.Mutex
	// expires contains the issued tokens. requests is the number of requested tokens, reviews the number of reviews.
	expires           map[string]time.Time
	requests, reviews int
}

// simulateTokens makes an issuer answer the requests for tokens and reviews.
func (f *fixture) simulateTokens() *issuer {
	i := &issuer{tb: f, clock: f.clock, server: f.server, expires: map[string]time.Time{}}
	f.server.set(func(s *server) { s.answer = i.answer })
	return i
}

// now returns the time of the simulated API server.
func (i *issuer) now() time.Time {
	i.server.mu.Lock()
	defer i.server.mu.Unlock()
	return i.clock.Now().Add(i.server.skew)
}

func (i *issuer) answer(request *http.Request) (*http.Response, error) {
	switch {
	case request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/token"):
		asked := &authenticationv1.TokenRequest{}
		i.read(request, asked)
		return i.write(i.issue(asked)), nil
	case strings.HasSuffix(request.URL.Path, "/tokenreviews"):
		asked := &authenticationv1.TokenReview{}
		i.read(request, asked)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.reviews++
		asked.Status = authenticationv1.TokenReviewStatus{Authenticated: i.expires[asked.Spec.Token].After(i.now()), Audiences: asked.Spec.Audiences}
		return i.write(asked), nil
	}
	return nil, nil
}

func (i *issuer) issue(asked *authenticationv1.TokenRequest) *authenticationv1.TokenRequest {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests++
	issued := i.now()
	expires := issued.Add(time.Duration(*asked.Spec.ExpirationSeconds) * time.Second)
	payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"jti":"%d"}`, issued.Unix(), expires.Unix(), i.requests)
	asked.Status = authenticationv1.TokenRequestStatus{
		Token: "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".x", ExpirationTimestamp: metav1.NewTime(expires),
	}
	i.expires[asked.Status.Token] = expires
	return asked
}

// expiry returns when a token expires by the API server's clock.
func (i *issuer) expiry(token []byte) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.expires[string(token)]
}

func (i *issuer) read(request *http.Request, into any) {
	kit.Must(i.tb, json.NewDecoder(request.Body).Decode(into))
}

func (i *issuer) write(answer any) *http.Response {
	text, err := json.Marshal(answer)
	kit.Must(i.tb, err)
	return respond(http.StatusCreated, string(text))
}

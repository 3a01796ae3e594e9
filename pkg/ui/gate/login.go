package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/trellis-k8s/trellis/pkg/ui"
)

// Cookie names. Browsers accept names with this prefix only over HTTPS, for all paths of this server, and for no
// other server
// (https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis).
const (
	sourceCookie = "__Host-trellis-token"
	targetCookie = "__Host-trellis-target-token"
)

// targetHeader is the header in which a proxy sends the token for the cluster with the objects. The other token is in
// Authorization.
const targetHeader = "Target-Authorization"

const (
	// longestToken is the maximum length of a token in bytes. Tokens of ServiceAccounts have about 1,000 bytes.
	// longestInCookie is the
	// maximum length that browsers store.
	longestToken, longestInCookie = 16 << 10, 3800
	// longestLogin is the maximum size of a login request in bytes.
	longestLogin = 64 << 10
	// loginTimeout limits how long a login request may take to arrive.
	loginTimeout = 10 * time.Second
)

// errNoToken is the response to a request without a token.
var errNoToken = &ui.DeniedError{Code: http.StatusUnauthorized, Reason: "Log in with a token."}

// errNotYet is the response until all ManagedResources were read once, because their namespaces determine the access
// reviews.
var errNotYet = &ui.DeniedError{Code: http.StatusServiceUnavailable, Reason: "ManagedResources are being read: try again in a moment"}

// tokensOf returns the tokens of a request, from headers or else from cookies.
func tokensOf(r *http.Request) (given tokens, byCookie bool, err error) {
	if header := r.Header.Get("Authorization"); header != "" {
		given = tokens{source: bearer(header), target: bearer(r.Header.Get(targetHeader))}
	} else {
		given, byCookie = tokens{source: cookieOf(r, sourceCookie), target: cookieOf(r, targetCookie)}, true
	}
	if given.source == "" {
		return given, byCookie, errNoToken
	}
	return given, byCookie, given.check(longestToken)
}

func bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func cookieOf(r *http.Request, name string) string {
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// check rejects invalid tokens (RFC 6750, section 2.1). The error does not contain the token.
func (t tokens) check(longest int) error {
	for _, token := range []string{t.source, t.target} {
		if len(token) > longest {
			return &ui.DeniedError{Code: http.StatusUnauthorized, Reason: fmt.Sprintf("This token is longer than the limit of %d bytes.", longest)}
		}
		if strings.ContainsFunc(strings.TrimRight(token, "="), isInvalidInToken) {
			return &ui.DeniedError{Code: http.StatusUnauthorized, Reason: "This is not a token: it contains invalid characters."}
		}
	}
	return nil
}

func isInvalidInToken(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/", r)
}

// post handles a request that changes the cookies. It must come from the page.
func (g *Gate) post(w http.ResponseWriter, r *http.Request, do func(http.ResponseWriter, *http.Request) error) {
	ui.SetHeaders(w.Header())
	err := func() error {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			return &ui.DeniedError{Code: http.StatusMethodNotAllowed, Reason: "only POST is allowed"}
		}
		if !g.server.Loaded() {
			return errNotYet
		}
		if !isFromPage(r) {
			return &ui.DeniedError{Code: http.StatusForbidden, Reason: "requests from pages of other servers are not allowed"}
		}
		return do(w, r)
	}()
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var denied *ui.DeniedError
	code := http.StatusBadGateway
	if errors.As(err, &denied) {
		code = denied.Code
	}
	body, _ := json.Marshal(ui.Refusal{Error: err.Error()}) // a string can always be encoded
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may have disconnected
}

// isFromPage reports whether a page of this server sent a POST request. It uses headers that all browsers send.
func isFromPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "":
		origin, err := url.Parse(r.Header.Get("Origin"))
		return err == nil && origin.Scheme == "https" && origin.Host != "" && origin.Host == r.Host
	}
	return false
}

// login reads tokens, and stores them in cookies if the clusters accept them.
func (g *Gate) login(w http.ResponseWriter, r *http.Request) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(loginTimeout)) // not supported by the writers of tests
	var asked struct {
		Token       string `json:"token"`
		TargetToken string `json:"targetToken"`
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		return &ui.DeniedError{Code: http.StatusUnsupportedMediaType, Reason: "the content type must be application/json"}
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestLogin)).Decode(&asked); err != nil {
		return &ui.DeniedError{Code: http.StatusBadRequest, Reason: "invalid login request"} // without its content
	}
	given := tokens{strings.TrimSpace(asked.Token), strings.TrimSpace(asked.TargetToken)}
	if given.source == "" {
		return errNoToken
	}
	if g.options.Target == nil {
		given.target = ""
	}
	if err := given.check(longestInCookie); err != nil {
		return err
	}
	s, _, err := g.enter(r, given)
	if err != nil {
		return err
	}
	if err := s.checkTarget(r); err != nil {
		g.removeIfRefused(s, err)
		return err
	}
	setCookie(w, sourceCookie, given.source)
	setCookie(w, targetCookie, given.target)
	return nil
}

// checkTarget returns an error if the cluster with the objects does not accept its token.
func (s *session) checkTarget(r *http.Request) error {
	if s.tokens.target == "" {
		return nil
	}
	client, err := authenticationclient.NewForConfig(withToken(s.gate.options.Target, s.tokens.target, s.gate.options.Version))
	if err != nil {
		return fmt.Errorf("set up the connection to the cluster with the objects: %w", err)
	}
	_, err = client.SelfSubjectReviews().Create(r.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return &refusedError{&ui.DeniedError{
			Code: http.StatusUnauthorized, Reason: "The cluster with the objects does not accept its token.",
		}}
	}
	return nil // other errors are reported when objects are read
}

// logout deletes the cookies with the tokens.
func (g *Gate) logout(w http.ResponseWriter, r *http.Request) error {
	given := tokens{source: cookieOf(r, sourceCookie), target: cookieOf(r, targetCookie)}
	if s := g.sessions.find(given); s != nil {
		g.sessions.remove(s)
	}
	setCookie(w, sourceCookie, "")
	setCookie(w, targetCookie, "")
	return nil
}

// setCookie stores a value until the browser is closed, or deletes it if the value is empty.
func setCookie(w http.ResponseWriter, name, value string) {
	cookie := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

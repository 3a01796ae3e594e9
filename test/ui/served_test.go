package ui

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/ui/gate"
	"github.com/trellis-k8s/trellis/test/kit"
)

// rowsOf returns the sorted names of all rows that a page receives.
func (s *site) rowsOf(t *testing.T) []string {
	t.Helper()
	told := until(t, s.follow(t, ""), func(told news) bool { return told.Loaded })
	var names []string
	for _, row := range told.Rows {
		names = append(names, row.Name)
	}
	slices.Sort(names)
	return names
}

// TestViewersSeeTheirOwn checks that each viewer sees what their own rights permit, and nothing else, in every view.
func TestViewersSeeTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.namespace(t), w.namespace(t)
	one, two := w.deliver(t, first, first+"-shop", state.Ready, shop), w.deliver(t, second, second+"-shop", state.Ready, shop)
	w.recordDrift(t, one, "Corrected one")
	w.recordDrift(t, two, "Corrected two")
	aliceName, aliceToken := w.account(t, first, "alice", viewing())
	_, bobToken := w.account(t, second, "bob", viewing()[:1])
	_, bossToken := w.account(t, first, "boss", nil)
	w.everywhere(t, first, "boss", viewing())
	s := w.serveToMany(t)
	alice, bob, boss := s.as(aliceToken), s.as(bobToken), s.as(bossToken)

	if got := alice.rowsOf(t); !slices.Equal(got, []string{one.Name}) {
		t.Errorf("alice receives %q", got)
	}
	if got := bob.rowsOf(t); !slices.Equal(got, []string{two.Name}) {
		t.Errorf("bob receives %q", got)
	}
	if got := boss.rowsOf(t); !slices.Contains(got, one.Name) || !slices.Contains(got, two.Name) {
		t.Errorf("the viewer with all rights receives %q", got)
	}
	if _, _, about := alice.get(t, "/api/about"); !strings.Contains(about, `"scope":"namespace `+first+`"`) || !strings.Contains(about, `"user":"`+aliceName+`"`) {
		t.Errorf("about: %s", about)
	}

	w.write(t, one, state.Failed, "no colour")
	w.write(t, two, state.Failed, "no colour")
	for path, says := range map[string]string{
		resourcePath(first, one.Name, "objects"): `"kind":"ConfigMap"`, resourcePath(first, one.Name, "diff"): `"changes":`,
		resourcePath(first, one.Name, "events"): "Corrected one", resourcePath(first, one.Name, "summary"): "no colour",
		resourcePath(first, one.Name, "history"): `"to":"Failed"`, "/api/activity": "Corrected one",
		resourcePath(first, one.Name, "inventory"): `"kind":"ConfigMap"`, resourcePath(first, one.Name, "why"): "no colour",
	} {
		kit.Eventually(t, "alice sees "+path, func() string { // the history is behind, and recent reads are cached for some seconds
			status, _, body := alice.get(t, path)
			if strings.Contains(body, second) || strings.Contains(body, "hunter2") {
				t.Fatalf("%s contains data that alice may not see: %s", path, body)
			}
			if status != http.StatusOK || !strings.Contains(body, says) {
				return "the answer is " + body
			}
			return ""
		})
		if foreign := strings.ReplaceAll(path, first, second); foreign != path {
			if status, _, body := alice.get(t, foreign); status != http.StatusForbidden || strings.Contains(body, "no colour") || strings.Contains(body, "Corrected two") {
				t.Errorf("alice at %s: %d %s", foreign, status, body)
			}
		}
	}
	var objects struct {
		Nodes []struct{ Health string }
	}
	notes := bob.read(t, resourcePath(second, two.Name, "objects"), &objects)
	if len(objects.Nodes) != 2 || objects.Nodes[0].Health != "Unseen" || !strings.Contains(strings.Join(notes, "\n"), "you may not read them") {
		t.Errorf("bob's tree without a right to read objects: %+v %q", objects, notes)
	}
	if _, _, body := bob.get(t, resourcePath(second, two.Name, "diff")); !strings.Contains(body, "cannot get resource") || strings.Contains(body, `"verb"`) {
		t.Errorf("bob's diff without a right to read Secrets: %s", body)
	}
	if _, _, body := bob.get(t, "/api/activity"); !strings.Contains(body, `"unseen":true`) || strings.Contains(body, "Corrected") {
		t.Errorf("bob's drift: %s", body)
	}

	asked := audit(t, first, second)
	if len(asked) < 10 {
		t.Errorf("the audit log has %d requests", len(asked))
	}
	for _, request := range asked {
		if !strings.HasPrefix(request.User.Username, "system:serviceaccount:"+first+":") && !strings.HasPrefix(request.User.Username, "system:serviceaccount:"+second+":") {
			t.Errorf("%s %s was read as %s, which is not a viewer", request.Verb, request.RequestURI, request.User.Username)
		}
	}
}

// TestAccessDenied checks that the page shows nothing of the cluster without a valid token.
func TestAccessDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, shop)
	_, token := w.account(t, namespace, "viewer", viewing())
	s := w.serveToMany(t)
	nobody := &site{base: s.base, http: s.plain}
	paths := []string{"/api/about", "/api/changes", "/api/activity", resourcePath(namespace, "shop", "history"), resourcePath(namespace, "shop", "inventory"), resourcePath(namespace, "shop", "diff"), resourcePath(namespace, "none", "summary")}
	for _, path := range paths {
		status, header, body := nobody.get(t, path)
		if status != http.StatusUnauthorized || !strings.Contains(body, `"login":"token"`) || strings.Contains(body, "shop") || strings.Contains(body, "v0.0.0") {
			t.Errorf("%s without a token: %d %s", path, status, body)
		}
		if header.Get("Content-Security-Policy") == "" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers are missing: %v", path, header)
		}
	}
	for name, wrong := range map[string]string{"wrong": token + "x", "made up": "abc.def", "no token": "a b", "markup": "<b>", "long": strings.Repeat("x", 20<<10), "empty": ""} {
		status, _, body := s.as(wrong).get(t, "/api/about")
		if status != http.StatusUnauthorized || wrong != "" && strings.Contains(body, wrong) {
			t.Errorf("a token that is %s: %d %s", name, status, body)
		}
	}
	if status, _, body := s.as(token, "Sec-Fetch-Site", "cross-site").get(t, "/api/about"); status != http.StatusForbidden {
		t.Errorf("requested by a page of another server: %d %s", status, body)
	}
	for _, path := range []string{"/api/login", "/api/logout"} {
		if status, header, _ := nobody.get(t, path); status != http.StatusMethodNotAllowed || header.Get("Allow") != http.MethodPost {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	limited := false
	for range 100 {
		if status, _, _ := s.as("made.up").get(t, "/api/about"); status == http.StatusTooManyRequests {
			limited = true
			break
		}
	}
	if !limited {
		t.Error("the number of attempts with tokens is not limited")
	}
	if _, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "https://"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

// TestLogin checks the login and the logout of a browser.
func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	_, token := w.account(t, namespace, "viewer", viewing())
	s := w.serveToMany(t)
	for name, test := range map[string]struct {
		body   string
		change func(*http.Request)
		want   int
	}{
		"another site":             {loginOf(token, ""), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"another site of a domain": {loginOf(token, ""), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"another origin": {loginOf(token, ""), func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://evil.example.org")
		}, http.StatusForbidden},
		"no origin":     {loginOf(token, ""), func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, http.StatusForbidden},
		"a form":        {loginOf(token, ""), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"no JSON":       {token, nil, http.StatusBadRequest},
		"much":          {loginOf(token, strings.Repeat("x", 100<<10)), nil, http.StatusBadRequest},
		"a long token":  {loginOf(strings.Repeat("x", 4000), ""), nil, http.StatusUnauthorized},
		"no token":      {loginOf("", ""), nil, http.StatusUnauthorized},
		"a wrong token": {loginOf("made.up", ""), nil, http.StatusUnauthorized},
	} {
		response, body := s.post(t, "/api/login", test.body, test.change)
		if response.StatusCode != test.want || response.Header.Get("Set-Cookie") != "" || strings.Contains(body, token) {
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
		}
	}
	response, body := s.post(t, "/api/login", loginOf(" "+token+"\n", ""), func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", s.base)
	})
	if response.StatusCode != http.StatusNoContent {
		t.Fatalf("log in: %d %s", response.StatusCode, body)
	}
	cookie := response.Cookies()[0]
	if cookie.Name != "__Host-trellis-token" || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 0 {
		t.Errorf("the cookie is %v", response.Header["Set-Cookie"])
	}
	with := &site{base: s.base, http: s.plain}
	about := func(site string) (int, string) {
		status, _, body := with.send(t, http.MethodGet, "/api/about", func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
			r.Header.Set("Sec-Fetch-Site", site)
		})
		return status, body
	}
	if status, body := about("same-origin"); status != http.StatusOK || !strings.Contains(body, `"canLeave":true`) || strings.Contains(body, token) {
		t.Errorf("with the cookie: %d %s", status, body)
	}
	if status, body := about("cross-site"); status != http.StatusForbidden {
		t.Errorf("with the cookie, requested by a page of another server: %d %s", status, body)
	}
	response, _ = s.post(t, "/api/logout", "{}", nil)
	if cookies := response.Cookies(); response.StatusCode != http.StatusNoContent || len(cookies) != 2 || cookies[0].MaxAge >= 0 || cookies[0].Value != "" {
		t.Errorf("log out: %d %v", response.StatusCode, response.Header["Set-Cookie"])
	}
}

// TestRightIsWithdrawn checks that an open page no longer receives what its viewer may no longer see.
func TestRightIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Ready, shop)
	_, token := w.account(t, namespace, "viewer", viewing())
	s := w.serveToMany(t).as(token)
	next := s.follow(t, "")
	told := until(t, next, func(told news) bool { return len(told.Rows) == 1 })
	kit.Must(t, w.client.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer-viewer"}}))
	emptied := until(t, next, func(told news) bool { return told.Reset && len(told.Rows) == 0 })
	if emptied.Notice == "" {
		t.Error("the page does not receive the reason for the empty list")
	}
	w.write(t, mr, state.Failed, "no")
	if again := until(t, s.follow(t, told.ID), func(told news) bool { return told.Loaded }); len(again.Rows) > 0 {
		t.Errorf("a page that resumes from its last event receives %+v", again)
	}
	if status, _, body := s.get(t, resourcePath(namespace, "shop", "history")); status != http.StatusForbidden {
		t.Errorf("history: %d %s", status, body)
	}
	kit.Must(t, w.client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"}}))
	kit.Eventually(t, "the token is no longer accepted", func() string {
		status, _, body := s.get(t, "/api/about")
		if status != http.StatusUnauthorized || !strings.Contains(body, "accept this token") {
			return "the answer is " + body
		}
		return ""
	})
}

// TestAnotherClusterWithTheObjects checks that objects are read with a token for their cluster, and that the page states when it has none.
func TestAnotherClusterWithTheObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Unhealthy, shop)
	w.recordDrift(t, mr, "Corrected something")
	_, source := w.account(t, namespace, "source", append(viewing()[:1:1], rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events", "secrets"}, Verbs: []string{"get", "list"}}))
	_, target := w.account(t, namespace, "target", viewing()[1:])
	s := w.serveToMany(t, func(options *gate.Options) { options.Target = rest.AnonymousClientConfig(shared.Get(t).Config()) })
	var objects struct {
		Nodes []struct{ Health string }
	}
	var findings json.RawMessage
	without := s.as(source)
	notes := strings.Join(without.read(t, resourcePath(namespace, "shop", "objects"), &objects), "\n")
	if len(objects.Nodes) != 2 || objects.Nodes[0].Health != "Unseen" || !strings.Contains(notes, "in another cluster, and you entered no token for it") {
		t.Errorf("without a token for the target: %+v %s", objects, notes)
	}
	without.read(t, resourcePath(namespace, "shop", "why"), &findings)
	if !strings.Contains(string(findings), "Corrected something") {
		t.Errorf("the findings from the ManagedResource are left out: %s", findings)
	}
	if status, _, body := without.get(t, resourcePath(namespace, "shop", "diff")); status != http.StatusForbidden || !strings.Contains(body, "no token for it") {
		t.Errorf("diff: %d %s", status, body)
	}
	if _, _, body := without.get(t, resourcePath(namespace, "shop", "events")); !strings.Contains(body, "Corrected something") {
		t.Errorf("Events: %s", body)
	}
	with := s.as(source, "Target-Authorization", "Bearer "+target)
	if notes := with.read(t, resourcePath(namespace, "shop", "objects"), &objects); objects.Nodes[0].Health != "Present" || objects.Nodes[1].Health != "Present" {
		t.Errorf("with both tokens: %+v %q", objects, notes)
	}
	if _, _, body := (&site{base: s.base, http: s.plain}).get(t, "/api/about"); !strings.Contains(body, `"login":"tokens"`) {
		t.Errorf("the page does not request both tokens: %s", body)
	}
	if response, body := s.post(t, "/api/login", loginOf(source, target+"x"), nil); response.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "cluster with the objects") {
		t.Errorf("log in with a wrong token for the target: %d %s", response.StatusCode, body)
	}
	if response, body := s.post(t, "/api/login", loginOf(source, target), nil); response.StatusCode != http.StatusNoContent || len(response.Cookies()) != 2 {
		t.Errorf("log in with both: %d %s", response.StatusCode, body)
	}
}

// TestNamespacesOfTheResourceManager checks that nothing is shown of namespaces that the resource-manager does not manage, regardless
// of the viewer's rights.
func TestNamespacesOfTheResourceManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace, other := w.namespace(t), w.namespace(t)
	w.deliver(t, other, "theirs", state.Ready, settings("theirs"))
	_, token := w.account(t, namespace, "boss", nil)
	w.everywhere(t, namespace, "boss", viewing())
	s := w.serveToMany(t, func(options *gate.Options) { options.Namespaces = []string{namespace} }).as(token)
	if _, _, about := s.get(t, "/api/about"); !strings.Contains(about, `"scope":"namespace `+namespace+`"`) {
		t.Errorf("about: %s", about)
	}
	for _, part := range []string{"summary", "inventory", "objects", "why", "history"} {
		if status, _, body := s.get(t, resourcePath(other, "theirs", part)); status != http.StatusForbidden || !strings.Contains(body, "does not watch namespace") {
			t.Errorf("%s: %d %s", part, status, body)
		}
	}
}

// TestOneByName checks that a viewer who may get one ManagedResource but list none sees that one.
func TestOneByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "mine", state.Ready, settings("mine"))
	w.deliver(t, namespace, "theirs", state.Ready, settings("theirs"))
	_, token := w.account(t, namespace, "viewer", []rbacv1.PolicyRule{
		{APIGroups: []string{resourcesv1alpha1.GroupName}, Resources: []string{"managedresources"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}},
	})
	s := w.serveToMany(t).as(token)
	told := until(t, s.follow(t, ""), func(told news) bool { return told.Loaded })
	if len(told.Rows) > 0 || told.Notice == "" {
		t.Errorf("a viewer who may list none receives %+v", told)
	}
	for name, want := range map[string]int{"mine": http.StatusOK, "theirs": http.StatusForbidden} {
		for _, part := range []string{"summary", "inventory", "history"} {
			if status, _, body := s.get(t, resourcePath(namespace, name, part)); status != want {
				t.Errorf("%s of %s: %d %s", part, name, status, body)
			}
		}
	}
	kit.Must(t, client.IgnoreNotFound(w.client.Delete(t.Context(), &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}})))
	kit.Eventually(t, "the history reports the deletion", func() string {
		_, _, body := s.get(t, resourcePath(namespace, "mine", "history"))
		if !strings.Contains(body, `"what":"deleted"`) {
			return "the answer is " + body
		}
		return ""
	})
}

package ui

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

const shop = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: $NS}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: $NS}
stringData: {password: hunter2-hunter2}
`

// TestHeaders checks, on every kind of answer, the headers that keep browsers from doing anything that the page does not need.
func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t, "-n", w.namespace(t))
	_, _, page := s.get(t, "/")
	script := regexp.MustCompile(`/assets/[0-9a-f]{16}/app\.js`).FindString(page)
	for path, want := range map[string]int{"/": 200, script: 200, "/assets/other/app.js": 404, "/api/about": 200, "/api/none": 404, "/none": 404} {
		status, header, _ := s.get(t, path)
		if status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := header.Get(name); got != value {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if cors := header.Get("Access-Control-Allow-Origin"); cors != "" {
			t.Errorf("%s: pages of other origins may read it: %s", path, cors)
		}
	}
	for path, want := range map[string]string{"/": "no-cache", script: "public, max-age=31536000, immutable", "/api/about": "no-store"} {
		if _, header, _ := s.get(t, path); header.Get("Cache-Control") != want {
			t.Errorf("%s: Cache-Control is %q", path, header.Get("Cache-Control"))
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		if status, _, _ := s.send(t, method, "/api/about", nil); status != http.StatusMethodNotAllowed {
			t.Errorf("%s: status %d", method, status)
		}
	}
	_, header, zipped := s.send(t, http.MethodGet, "/api/about", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
	if header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(zipped, "\x1f\x8b") {
		t.Error("JSON is not compressed")
	}
	if status, _, body := s.send(t, http.MethodGet, "/api/about", func(r *http.Request) { r.Header.Set("If-None-Match", header.Get("ETag")) }); status != http.StatusNotModified || body != "" {
		t.Errorf("an answer that the page already has is sent again: %d", status)
	}
}

// TestAccess checks that a client sees nothing without the printed address.
func TestAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.run(t, "-n", w.namespace(t))
	token := strings.TrimPrefix(s.address, s.base)
	if status, _, body := s.get(t, "/api/about"); status != http.StatusUnauthorized || strings.Contains(body, "v0.0.0") {
		t.Errorf("without a cookie: %d %s", status, body)
	}
	if _, header, _ := s.get(t, "/?token=wrong"); header.Get("Set-Cookie") != "" {
		t.Error("a wrong token is accepted")
	}
	for _, host := range []string{"evil.example.org", "evil.example.org" + s.base[strings.LastIndex(s.base, ":"):], "127.0.0.1", "127.0.0.1:1"} {
		status, header, _ := s.send(t, http.MethodGet, token, func(r *http.Request) { r.Host = host })
		if status != http.StatusMisdirectedRequest || header.Get("Set-Cookie") != "" {
			t.Errorf("host %s: status %d", host, status)
		}
	}
	_, header, _ := s.get(t, token)
	cookie := header.Get("Set-Cookie")
	for _, wanted := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, wanted) {
			t.Errorf("the cookie does not contain %s: %s", wanted, cookie)
		}
	}
	if strings.Contains(cookie, strings.TrimPrefix(token, "/?token=")) {
		t.Error("the cookie is the token")
	}
	if _, header, _ := s.get(t, token); header.Get("Set-Cookie") != "" {
		t.Error("a token is accepted twice")
	}
	value, _, _ := strings.Cut(cookie, ";")
	with := func(site string) int {
		status, _, _ := s.send(t, http.MethodGet, "/api/about", func(r *http.Request) {
			r.Header.Set("Cookie", value)
			if site != "" {
				r.Header.Set("Sec-Fetch-Site", site)
			}
		})
		return status
	}
	for site, want := range map[string]int{"": 200, "same-origin": 200, "none": 200, "same-site": 401, "cross-site": 401} {
		if got := with(site); got != want {
			t.Errorf("requested by a page with Sec-Fetch-Site %q: %d, want %d", site, got, want)
		}
	}
	another := printed.FindAllString(s.written.String(), -1)
	if len(another) != 2 || another[0] == another[1] {
		t.Fatalf("addresses: %q", another)
	}
	if _, header, _ := s.get(t, strings.TrimPrefix(another[1], s.base)); header.Get("Set-Cookie") == "" {
		t.Error("the second address is not accepted")
	}
}

// news is an event that a page receives.
type news struct {
	ID     string
	Reset  bool
	Loaded bool
	Rows   []struct{ Name, State, Message string }
	Gone   []types.NamespacedName
	Notice string
}

// follow returns a function that returns the next event for a page, until the test ends.
func (s *site) follow(t *testing.T, since string) func() news {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/api/changes?since="+since, http.NoBody)
	kit.Must(t, err)
	response, err := s.http.Do(request)
	kit.Must(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Fatalf("the stream is %s", kind)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<24)
	return func() news {
		t.Helper()
		var told news
		for lines.Scan() {
			if id, is := strings.CutPrefix(lines.Text(), "id: "); is {
				told.ID = id
			}
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				kit.Must(t, json.Unmarshal([]byte(data), &told))
				return told
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return told
	}
}

// until reads events until one meets the condition.
func until(t *testing.T, next func() news, holds func(news) bool) news {
	t.Helper()
	for range 1000 {
		if told := next(); holds(told) {
			return told
		}
	}
	t.Fatal("the expected event was not received")
	return news{}
}

func TestChangesAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Ready, shop)
	s := w.serve(t, "-n", namespace)
	next := s.follow(t, "")
	var seen news
	until(t, next, func(told news) bool {
		seen = told
		return told.Loaded && len(told.Rows) == 1 && told.Rows[0].State == "Ready"
	})
	w.write(t, mr, state.Failed, "first line\nsecond line")
	changed := until(t, next, func(told news) bool { return len(told.Rows) > 0 })
	if changed.Reset || changed.Rows[0].State != "Failed" || changed.Rows[0].Message != "first line" {
		t.Errorf("received %+v", changed)
	}
	kit.Must(t, w.client.Delete(t.Context(), mr))
	until(t, next, func(told news) bool { return len(told.Gone) == 1 && told.Gone[0].Name == "shop" })

	if resumed := s.follow(t, seen.ID)(); resumed.Reset || len(resumed.Gone) != 1 {
		t.Errorf("a page that resumes receives %+v", resumed)
	}
	if anew := s.follow(t, "OTHER.1")(); !anew.Reset {
		t.Errorf("a page of a former server receives %+v", anew)
	}
	var history []struct{ What, To string }
	_, _, body := s.get(t, resourcePath(namespace, "shop", "history"))
	kit.Must(t, json.Unmarshal([]byte(body), &history))
	if len(history) == 0 || history[0].What != "deleted" || !strings.Contains(body, `"to":"Failed"`) {
		t.Errorf("the history of a deleted ManagedResource: %s", body)
	}
}

func TestOneManagedResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Unhealthy, shop+fmt.Sprintf(`---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: %s}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: registry.example/web}]}}}
`, namespace))
	s := w.serve(t)
	edited := client.RawPatch(types.MergePatchType, []byte(`{"data":{"colour":"red"}}`))
	kit.Must(t, w.client.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}}, edited, client.FieldOwner("kubectl-edit")))
	changed := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"password":"swordfish-swordfish"}}`))
	kit.Must(t, w.client.Patch(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "password"}}, changed, client.FieldOwner("kubectl-edit")))
	w.pod(t, namespace, "web")

	var objects struct {
		Nodes []struct {
			Level                            int
			Kind, Name, Health, Sync, Detail string
		}
	}
	s.read(t, resourcePath(namespace, "shop", "objects"), &objects)
	var shown []string
	for _, node := range objects.Nodes {
		shown = append(shown, fmt.Sprintf("%d %s %s %s", node.Level, node.Kind, node.Health, node.Sync))
	}
	want := "1 ConfigMap Present Changed, 1 Secret Present Changed, 1 ReplicaSet Progressing Synced, 2 Pod Unhealthy "
	if got := strings.Join(shown, ", "); got != want {
		t.Errorf("the tree is\n%s, want\n%s", got, want)
	}
	var findings []struct {
		Objects []struct {
			Kind, Name string
			Below      []struct{ Kind, Name string }
			ChangedBy  []struct{ Manager string }
		}
	}
	s.read(t, resourcePath(namespace, "shop", "why"), &findings)
	if text := fmt.Sprint(findings); len(findings) != 1 || !strings.Contains(text, "kubectl-edit") || !strings.Contains(text, "{Pod web-1}") {
		t.Errorf("findings: %+v", findings)
	}

	var diff struct {
		Changes []struct{ Verb, Kind, Diff string }
	}
	s.read(t, resourcePath(namespace, "shop", "diff"), &diff)
	text := fmt.Sprint(diff)
	for _, wanted := range []string{"-  colour: red\n+  colour: blue", "-  password: '*** (before)'\n+  password: '*** (after)'"} {
		if !strings.Contains(text, wanted) {
			t.Errorf("%q is not in the differences:\n%s", wanted, text)
		}
	}
	for _, part := range []string{"summary", "inventory", "objects", "why", "diff", "events", "history"} {
		_, _, body := s.get(t, resourcePath(namespace, "shop", part))
		for _, secret := range []string{"hunter2", "swordfish", "aHVudGVy", "c3dvcmRm"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s contains the secret %s:\n%s", part, secret, body)
			}
		}
	}
	kit.Must(t, w.client.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop.1"}, Reason: "Corrected", Message: "Corrected ConfigMap", Type: "Normal", LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: "ManagedResource", Namespace: namespace, Name: "shop", UID: mr.UID, APIVersion: resourcesv1alpha1.SchemeGroupVersion.String()},
	}))
	var events []struct{ Reason string }
	s.read(t, resourcePath(namespace, "shop", "events"), &events)
	if len(events) != 1 || events[0].Reason != "Corrected" {
		t.Errorf("events: %+v", events)
	}
	kit.Eventually(t, "the drift is reported", func() string {
		_, _, body := s.get(t, "/api/activity")
		if !strings.Contains(body, "Corrected ConfigMap") {
			return "the answer is " + body
		}
		return ""
	})
}

// pod creates a Pod of a ReplicaSet that cannot be scheduled.
func (w *world) pod(t *testing.T, namespace, owner string) {
	t.Helper()
	set := &metav1.PartialObjectMetadata{}
	set.APIVersion, set.Kind = "apps/v1", "ReplicaSet"
	kit.Must(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: owner}, set))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: owner + "-1", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/web"}}},
	}
	kit.Must(t, w.client.Create(t.Context(), pod))
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
	kit.WriteStatus(t, w.client, pod)
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	s := w.serve(t, "-n", namespace)
	for path, want := range map[string]int{
		resourcePath(namespace, "missing", "summary"): 404, resourcePath(namespace, "missing", "objects"): 404,
		resourcePath(namespace, "A_B", "summary"): 400, resourcePath("a.b", "shop", "summary"): 400, resourcePath(namespace, "%2e%2e", "summary"): 400,
		resourcePath(namespace, "a%2Fb", "diff"): 400, resourcePath(namespace, strings.Repeat("a", 300), "history"): 400, resourcePath(namespace, "shop", "none"): 404,
	} {
		if status, _, body := s.get(t, path); status != want {
			t.Errorf("%s: status %d, want %d: %s", path, status, want, body)
		}
	}
	if _, _, body := s.get(t, resourcePath(namespace, "missing", "summary")); !strings.Contains(body, `"gone":true`) {
		t.Errorf("a ManagedResource that does not exist: %s", body)
	}
	status, _, _ := s.send(t, http.MethodGet, "/api/about", func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("hello")), 5
	})
	if status == http.StatusOK {
		t.Error("a request with a body is answered")
	}
}

// TestPermissions checks that the page shows what the viewer may see, and names the rest.
func TestPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, shop)
	s := w.serve(t, "-n", namespace, "--as", w.viewer(t, namespace))
	var objects struct {
		Nodes []struct{ Kind, Health, Sync string }
	}
	notes := s.read(t, resourcePath(namespace, "shop", "objects"), &objects)
	if len(objects.Nodes) != 2 || objects.Nodes[0].Health != "Present" || objects.Nodes[1].Health != "Unseen" || objects.Nodes[1].Sync != "Unseen" {
		t.Errorf("nodes: %+v", objects.Nodes)
	}
	if text := strings.Join(notes, "\n"); !strings.Contains(text, "Not shown, because you may not read them: Secrets in namespace "+namespace) {
		t.Errorf("notes: %s", text)
	}
	if status, _, body := s.get(t, resourcePath(namespace, "shop", "diff")); status == http.StatusOK && !strings.Contains(body, "may not") && !strings.Contains(body, "forbidden") {
		t.Errorf("a diff without the right to read Secrets: %d %s", status, body)
	}
	if _, _, body := s.get(t, "/api/activity"); !strings.Contains(body, `"unseen":true`) {
		t.Errorf("drift without the right to read Events: %s", body)
	}
	if status, _, body := s.get(t, resourcePath("default", "shop", "summary")); status != http.StatusForbidden || !strings.Contains(body, `"forbidden":true`) {
		t.Errorf("another namespace: %d %s", status, body)
	}
}

// viewer returns a user who may see ManagedResources and ConfigMaps of a namespace.
func (w *world) viewer(t *testing.T, namespace string) string {
	t.Helper()
	user := "user-" + namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{resourcesv1alpha1.GroupName}, Resources: []string{"managedresources"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
	}}
	kit.Must(t, w.client.Create(t.Context(), role))
	kit.Must(t, w.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
	}))
	return user
}

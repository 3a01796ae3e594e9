package nodeagentauthorizer

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/accessreview"
)

// TestHandler_RejectsMalformedReviews expects an HTTP error status, so that the API server follows its failure policy.
func TestHandler_RejectsMalformedReviews(t *testing.T) {
	const v1 = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview"`
	s := newSetup(t)
	for name, test := range map[string]struct {
		method, contentType, body string
		code                      int
	}{
		"GET":                {http.MethodGet, "application/json", v1 + "}", 405},
		"PUT":                {http.MethodPut, "application/json", v1 + "}", 405},
		"no content type":    {http.MethodPost, "", v1 + "}", 415},
		"protobuf":           {http.MethodPost, "application/vnd.kubernetes.protobuf", v1 + "}", 415},
		"YAML":               {http.MethodPost, "application/yaml", v1 + "}", 415},
		"bad content type":   {http.MethodPost, "application/json; charset", v1 + "}", 415},
		"nothing":            {http.MethodPost, "application/json", "", 400},
		"null":               {http.MethodPost, "application/json", "null", 400},
		"a list":             {http.MethodPost, "application/json", "[]", 400},
		"half a review":      {http.MethodPost, "application/json", v1, 400},
		"two reviews":        {http.MethodPost, "application/json", v1 + "}" + v1 + "}", 400},
		"another kind":       {http.MethodPost, "application/json", `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview"}`, 400},
		"another group":      {http.MethodPost, "application/json", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview"}`, 400},
		"another version":    {http.MethodPost, "application/json", `{"apiVersion":"authorization.k8s.io/v2","kind":"SubjectAccessReview"}`, 400},
		"no version":         {http.MethodPost, "application/json", `{"kind":"SubjectAccessReview"}`, 400},
		"another type":       {http.MethodPost, "application/json", v1 + `,"spec":{"user":{"top-secret":1}}}`, 400},
		"too deep":           {http.MethodPost, "application/json", v1 + `,"spec":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", 400},
		"3 MiB":              {http.MethodPost, "application/json", v1 + strings.Repeat(" ", 3<<20) + "}", 413},
		"a byte too large":   {http.MethodPost, "application/json", v1 + strings.Repeat(" ", accessreview.MaxBody-len(v1)) + "}", 413},
		"as large as it may": {http.MethodPost, "application/json", v1 + strings.Repeat(" ", accessreview.MaxBody-len(v1)-1) + "}", 200},
		"a character set":    {http.MethodPost, "application/json; charset=utf-8", v1 + "}", 200},
		"fields of tomorrow": {http.MethodPost, "application/json", v1 + `,"spec":{"future":1}}`, 200},
	} {
		for _, knowsLength := range []bool{true, false} {
			request := httptest.NewRequest(test.method, Path, strings.NewReader(test.body))
			if !knowsLength {
				request.ContentLength = -1
			}
			if test.contentType != "" {
				request.Header.Set("Content-Type", test.contentType)
			}
			response := httptest.NewRecorder()
			s.handler.ServeHTTP(response, request)
			if response.Code != test.code {
				t.Errorf("%s: status %d, want %d: %s", name, response.Code, test.code, response.Body)
			}
			if response.Code == http.StatusMethodNotAllowed && response.Header().Get("Allow") != http.MethodPost {
				t.Errorf("%s: the Allow header is missing", name)
			}
			if strings.Contains(response.Body.String()+s.log(), "top-secret") {
				t.Errorf("%s: the response or the log repeats the request: %s", name, response.Body)
			}
		}
	}
}

// TestVersions checks that the response has the version of the review, and that groups are read from the field name of that
// version.
func TestVersions(t *testing.T) {
	s := newSetup(t, everything()...)
	for _, test := range []struct{ version, groups, status string }{
		{"v1", "groups", `{"allowed":true}`},
		{"v1beta1", "group", `{"allowed":true}`},
		{"v1", "group", `{"allowed":false}`},
		{"v1beta1", "groups", `{"allowed":false}`},
		{"v1", "Groups", `{"allowed":false}`},
	} {
		code, body := s.post(t.Context(), `{"apiVersion":"authorization.k8s.io/`+test.version+`","kind":"SubjectAccessReview","spec":{"user":"`+userPrefix+`own",
			"`+test.groups+`":["a","`+userGroup+`"],"uid":"1","extra":{"a":["b"]},"resourceAttributes":{"verb":"get","resource":"nodes","version":"v1","name":"n-own"}}}`)
		want := `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/` + test.version + `","spec":{},"status":` + test.status + `}`
		if code != http.StatusOK || body != want {
			t.Errorf("%+v: status %d, %s, want %s", test, code, body, want)
		}
	}
}

// TestAttributes checks that a review without resource attributes is denied.
func TestAttributes(t *testing.T) {
	s := newSetup(t, everything()...)
	const resource, other = `"resourceAttributes":{"verb":"list","resource":"nodes"}`, `"nonResourceAttributes":{"verb":"get","path":"/api"}`
	for attributes, want := range map[string]string{
		resource: `"allowed":true}`, other: `"denied":true,`, resource + "," + other: `"denied":true,`, `"uid":"1"`: `"denied":true,`,
	} {
		_, body := s.post(t.Context(), `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"`+userPrefix+`own","groups":["`+userGroup+`"],`+attributes+`}}`)
		if !strings.Contains(body, want) {
			t.Errorf("%s: %s", attributes, body)
		}
	}
}

// TestMessages checks that the log has the user, verb, resource and name, limited in length, and that metrics count decisions.
func TestMessages(t *testing.T) {
	s := newSetup(t, everything()...)
	long := strings.Repeat("x", 10_000)
	s.post(t.Context(), bodyOf("own", "", "get", "nodes", "a-namespace", "n-own"))
	s.post(t.Context(), bodyOf("own", "", "get", "nodes", "", "n-foreign"))
	s.post(t.Context(), bodyOf("own", "", long, long, long, long))
	s.post(t.Context(), bodyOf(long, "", "get", "nodes", "", "n-own"))
	s.post(t.Context(), `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"a","extra":{"token":["top-secret"]}}}`)
	log := s.log()
	if !strings.Contains(log, `"user"="`+userPrefix+`own" "verb"="get" "resource"="nodes" "name"="n-own" "decision"="allowed"`) {
		t.Errorf("the log is %s", log)
	}
	if strings.Contains(log, "top-secret") || strings.Contains(log, "a-namespace") || len(log) > 20*maxLogged {
		t.Errorf("the log is too long, %d bytes: %s", len(log), log)
	}
	counted := map[string]float64{}
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			counted[family.GetName()+" "+metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"resource_manager_node_agent_authorizer_decisions_total allowed": 1, "resource_manager_node_agent_authorizer_decisions_total denied": 3,
		"resource_manager_node_agent_authorizer_decisions_total error": 0, "resource_manager_node_agent_authorizer_decisions_total no_opinion": 1,
		"resource_manager_node_agent_authorizer_reads_total Machine": 1, "resource_manager_node_agent_authorizer_reads_total Node": 1,
	}
	if !maps.Equal(counted, want) {
		t.Errorf("the counters are %v, want %v", counted, want)
	}
}

// FuzzHandler checks that any body gets a well-formed response, and that a user without the prefix and group is never allowed
// anything.
func FuzzHandler(f *testing.F) {
	f.Add([]byte(bodyOf("own", "", "get", "nodes", "", "n-own")))
	f.Add([]byte(bodyOf("own", "", "delete", "pods", "default", "pod-foreign")))
	f.Add([]byte(bodyOf("", "", "list", "secrets", "kube-system", "")))
	f.Add([]byte(strings.Replace(bodyOf("own", "", "list", "pods", "", ""), "/v1", "/v1beta1", 1)))
	f.Add([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"a","nonResourceAttributes":{"path":"/"}}}`))
	f.Add([]byte(`{"apiVersion":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := newSetup(t, everything()...)
		code, answer := s.post(t.Context(), string(body))
		if code != http.StatusOK {
			if code < 400 || code >= 500 {
				t.Fatalf("status %d: %s", code, answer)
			}
			return
		}
		var asked, answered authorizationv1.SubjectAccessReview
		if err := json.Unmarshal([]byte(answer), &answered); err != nil {
			t.Fatal(err)
		}
		status := answered.Status
		if answered.Kind != "SubjectAccessReview" || !strings.HasPrefix(answered.APIVersion, "authorization.k8s.io/v1") || status.Allowed && status.Denied {
			t.Fatalf("the answer is %s", answer)
		}
		if status.Allowed || status.Denied {
			var beta struct {
				Spec struct {
					Group []string `json:"group"`
				} `json:"spec"`
			}
			_, _ = json.Unmarshal(body, &asked), json.Unmarshal(body, &beta)
			if !strings.HasPrefix(asked.Spec.User, userPrefix) || !slices.Contains(append(asked.Spec.Groups, beta.Spec.Group...), userGroup) {
				t.Fatalf("%s has the response %s", body, answer)
			}
		}
	})
}

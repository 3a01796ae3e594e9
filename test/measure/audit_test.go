package measure

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// line returns a line of an audit log.
func line(id, agent, verb, uri, reference string, code int) string {
	return fmt.Sprintf(`{"kind":"Event","level":"Metadata","auditID":%q,"stage":"ResponseComplete","requestURI":%q,"verb":%q,`+
		`"user":{"username":"admin"},"userAgent":%q,%s"responseStatus":{"metadata":{},"code":%d},`+
		`"stageTimestamp":"2026-01-02T03:04:05.678901Z"}`+"\n", id, uri, verb, agent, reference, code)
}

func reference(resource, subresource string) string {
	return fmt.Sprintf(`"objectRef":{"resource":%q,"namespace":"a","name":"b","subresource":%q},`, resource, subresource)
}

func TestParseAudit(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	const agent = "resource-manager/v1 (linux/amd64)"
	for name, test := range map[string]struct {
		line string
		want Request
	}{
		"object":       {line("1", agent, "patch", "/api/v1/x", reference("configmaps", ""), 200), Request{"resource-manager", "admin", "patch", "configmaps", at, false, "a/b"}},
		"subresource":  {line("1", agent, "patch", "/apis/x", reference("managedresources", "status"), 409), Request{"resource-manager", "admin", "patch", "managedresources/status", at, true, "a/b"}},
		"discovery":    {line("1", agent, "get", "/apis?timeout=32s", "", 200), Request{"resource-manager", "admin", VerbDiscover, "/apis", at, false, ""}},
		"impersonated": {line("1", "curl", "get", "/readyz", `"impersonatedUser":{"username":"jane"},`, 200), Request{"curl", "jane", VerbDiscover, "/readyz", at, false, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			id, got, err := parseAudit([]byte(test.line))
			if err != nil || id != "1" || got != test.want {
				t.Errorf("got %q, %+v, %v, want %+v", id, got, err, test.want)
			}
		})
	}
	if _, _, err := parseAudit([]byte("{")); err == nil {
		t.Error("got no error for half a line")
	}
}

func TestRequestsAreDistinguished(t *testing.T) {
	for name, test := range map[string]struct {
		request                          Request
		owned, byController, writesAtAll bool
	}{
		"a write of ours":             {Request{Client: "resource-manager", Verb: "patch", Resource: "secrets"}, true, false, true},
		"a read of ours":              {Request{Client: "resource-manager", Verb: "get", Resource: "secrets"}, true, false, false},
		"discovery of ours":           {Request{Client: "resource-manager", Verb: VerbDiscover, Resource: "/apis"}, true, false, false},
		"of the predecessor":          {Request{Client: "gardener-resource-manager", Verb: "update", Resource: "secrets"}, true, false, true},
		"a watch of ours":             {Request{Client: "resource-manager", Verb: "watch", Resource: "secrets"}, false, false, false},
		"a lease of ours":             {Request{Client: "resource-manager", Verb: "update", Resource: "leases"}, false, false, true},
		"of another controller":       {Request{Client: "kube-controller-manager", Verb: "update", Resource: "deployments/status"}, false, true, true},
		"read by another controller":  {Request{Client: "kube-controller-manager", Verb: "list", Resource: "deployments"}, false, false, false},
		"lease of another controller": {Request{Client: "kube-controller-manager", Verb: "update", Resource: "leases"}, false, false, true},
		"of the API server":           {Request{Client: "kube-apiserver", Verb: "update", Resource: "endpointslices"}, false, false, true},
		"of this program":             {Request{Client: "bench-user", Verb: "create", Resource: "secrets"}, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := owned(test.request); got != test.owned {
				t.Errorf("owned: got %t", got)
			}
			if got := test.request.ByController(); got != test.byController {
				t.Errorf("byController: got %t", got)
			}
			if got := test.request.Writes(); got != test.writesAtAll {
				t.Errorf("writes: got %t", got)
			}
		})
	}
}

// growing is a log that is appended to while it is read.
type growing struct{ strings.Builder }

type growingReader struct {
	log  *growing
	read int
}

func (r *growingReader) Read(buffer []byte) (int, error) {
	n := copy(buffer[:min(len(buffer), 100)], r.log.String()[r.read:]) // in small pieces
	r.read += n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *growingReader) Close() error { return nil }

func TestAuditIsReadAsItGrows(t *testing.T) {
	log := &growing{}
	audit := &Audit{file: &growingReader{log: log}, watches: map[string]bool{}}
	get := line("1", "resource-manager/v1", "get", "/api/v1/x", reference("secrets", ""), 404)
	watch := line("2", "resource-manager/v1", "watch", "/api/v1/x", reference("secrets", ""), 200)
	lease := line("3", "resource-manager/v1", "update", "/apis/x", reference("leases", ""), 200)
	other := line("4", "kube-controller-manager/v1", "get", "/api/v1/x", reference("secrets", ""), 200)

	log.WriteString(get + watch + lease + other + get[:20])
	fresh, err := audit.Read()
	if err != nil || len(fresh) != 4 {
		t.Fatalf("got %d requests and %v, want the 4 whole lines", len(fresh), err)
	}
	log.WriteString(get[20:] + watch) // the end of the watch
	if fresh, err = audit.Read(); err != nil || len(fresh) != 1 {
		t.Fatalf("got %d requests and %v, want the completed line", len(fresh), err)
	}
	counts := audit.Of(Request.ByManager)
	if got, want := counts.String(), "2 (failed), 2 get secrets, 1 watch secrets"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if counts.Total() != 2 || counts.Writes() != 0 {
		t.Errorf("got %d requests and %d writes, want 2 and 0", counts.Total(), counts.Writes())
	}
	if err := audit.Skip(); err != nil || len(audit.Of(Request.ByManager)) != 0 {
		t.Errorf("skip leaves %v, %v", audit.Of(Request.ByManager), err)
	}
}

func TestSettle(t *testing.T) {
	audit := &Audit{file: io.NopCloser(strings.NewReader("")), watches: map[string]bool{}}
	began := time.Now()
	if err := audit.Settle(t.Context(), owned, 20*time.Millisecond, time.Minute); err != nil || time.Since(began) < 20*time.Millisecond {
		t.Errorf("it took %s: %v", time.Since(began), err)
	}
	if err := audit.Settle(t.Context(), owned, time.Hour, 20*time.Millisecond); err != nil {
		t.Errorf("error although only the maximum time was reached: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := audit.Settle(ctx, owned, time.Hour, time.Hour); err == nil {
		t.Error("got no error for a cancelled context")
	}
}

func TestTally(t *testing.T) {
	sum := Tally{"get secrets": 2, "patch secrets": 1}.Add(Tally{"patch secrets": 3, "patch managedresources/status": 1, FailedRequests: 2})
	if got, want := sum.String(), "4 patch secrets, 2 (failed), 2 get secrets, 1 patch managedresources/status"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if verbs := sum.ByVerb(); len(verbs) != 2 || verbs["get"] != 2 || verbs["patch"] != 5 {
		t.Errorf("got %v", verbs)
	}
	if sum.Total() != 7 || sum.Writes() != 5 {
		t.Errorf("got %d requests and %d writes, want 7 and 5", sum.Total(), sum.Writes())
	}
}

func owned(r Request) bool { return r.ByManager() && r.Counts() }

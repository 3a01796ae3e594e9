// Package measure is shared by the programs that measure: it reads requests from an audit log and the CPU time and
// memory of processes, runs a resource-manager as a process, and formats tables.
package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// auditEvent has the required fields of a line in kube-apiserver's audit log.
type auditEvent struct {
	AuditID    string `json:"auditID"`
	Verb       string `json:"verb"`
	UserAgent  string `json:"userAgent"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

// Request is one request to kube-apiserver.
type Request struct {
	// Client is the program that sent the request, the first word of its user agent.
	Client string
	// User is the user who sent the request, or the impersonated user.
	User string
	// Verb is a verb of Kubernetes, or VerbDiscover.
	Verb string
	// Resource is the target of the request, for example "pods/status".
	Resource string
	Ended    time.Time
	Failed   bool
	// Object is the namespace and the name of the object, empty if the request has none.
	Object string
}

// VerbDiscover is the verb of requests that have no resource: kinds, versions, health.
const VerbDiscover = "discover"

// ofHealth marks the requests of the health controller.
const ofHealth = " (health)"

// Writes reports whether the request changes something.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch", VerbDiscover:
		return false
	}
	return true
}

// ByManager reports whether a resource-manager of any project sent the request.
func (r Request) ByManager() bool { return strings.Contains(r.Client, "resource-manager") }

// ByController reports whether the request is a write by another controller.
func (r Request) ByController() bool {
	return r.Writes() && r.Resource != "leases" && !r.ByManager() &&
		!strings.HasPrefix(r.Client, AgentPrefix) && r.Client != "kube-apiserver"
}

// Counts reports whether the request counts. Leases and watches do not.
func (r Request) Counts() bool { return r.Verb != "watch" && r.Resource != "leases" }

// parseAudit reads a line of the audit log.
func parseAudit(line []byte) (auditID string, _ Request, _ error) {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return "", Request{}, fmt.Errorf("read a line of the audit log: %w", err)
	}
	client, _, _ := strings.Cut(event.UserAgent, "/")
	result := Request{Client: client, User: event.User.Username, Verb: event.Verb, Ended: event.StageTimestamp}
	if event.ImpersonatedUser != nil {
		result.User = event.ImpersonatedUser.Username
	}
	if event.ObjectRef != nil {
		result.Resource, result.Object = event.ObjectRef.Resource, strings.Trim(event.ObjectRef.Namespace+"/"+event.ObjectRef.Name, "/")
		if event.ObjectRef.Subresource != "" {
			result.Resource += "/" + event.ObjectRef.Subresource
		}
		if strings.Contains(event.RequestURI, "fieldManager="+resourcesv1alpha1.HealthFieldManager+"&") {
			result.Resource += ofHealth
		}
	} else {
		path, _, _ := strings.Cut(event.RequestURI, "?")
		result.Verb, result.Resource = VerbDiscover, path
	}
	result.Failed = event.ResponseStatus != nil && event.ResponseStatus.Code >= 400
	return event.AuditID, result, nil
}

// Audit reads a growing audit log. It is read between timed phases, because reading takes a while.
type Audit struct {
	file     io.ReadCloser
	partial  []byte
	watches  map[string]bool // by audit ID: watches are logged when they start and when they end
	requests []Request
}

// OpenAudit opens the audit log of a kube-apiserver.
func OpenAudit(path string) (*Audit, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &Audit{file: file, watches: map[string]bool{}}, nil
}

// Read reads the lines logged since the last call, and returns the new requests.
func (a *Audit) Read() ([]Request, error) {
	before := len(a.requests)
	buffer := make([]byte, 1<<20)
	for {
		n, err := a.file.Read(buffer)
		if err := a.parse(buffer[:n]); err != nil {
			return nil, err
		}
		if errors.Is(err, io.EOF) {
			return a.requests[before:], nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
	}
}

func (a *Audit) parse(content []byte) error {
	for {
		line, rest, complete := bytes.Cut(content, []byte("\n"))
		a.partial = append(a.partial, line...)
		if !complete {
			return nil
		}
		id, request, err := parseAudit(a.partial)
		if err != nil {
			return err
		}
		if request.Verb != "watch" || !a.watches[id] {
			a.requests = append(a.requests, request)
		}
		if request.Verb == "watch" {
			a.watches[id] = true
		}
		a.partial, content = a.partial[:0], rest
	}
}

// Skip discards all requests so far.
func (a *Audit) Skip() error {
	_, err := a.Read()
	a.requests = nil
	return err
}

// Settle reads until there was no selected request for the duration quiet, or the duration most is over.
func (a *Audit) Settle(ctx context.Context, sort func(Request) bool, quiet, most time.Duration) error {
	last := time.Now()
	err := wait.PollUntilContextTimeout(ctx, quiet/8, most, true, func(context.Context) (bool, error) {
		fresh, err := a.Read()
		for _, request := range fresh {
			if sort(request) && request.Ended.After(last) {
				last = request.Ended
			}
		}
		return time.Since(last) >= quiet, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil
	}
	return err
}

// Count counts the selected requests since Skip.
func (a *Audit) Count(sort func(Request) bool) int {
	count := 0
	for _, request := range a.requests {
		if sort(request) {
			count++
		}
	}
	return count
}

// Of counts the selected requests since Skip, except leases.
func (a *Audit) Of(sort func(Request) bool) Tally {
	result := Tally{}
	for _, request := range a.requests {
		if sort(request) && request.Resource != "leases" {
			result[request.Verb+" "+request.Resource]++
			if request.Failed {
				result[FailedRequests]++
			}
		}
	}
	return result
}

// Some returns the first of the selected requests since Skip, except leases: at most the given number.
func (a *Audit) Some(sort func(Request) bool, most int) []Request {
	var result []Request
	for _, request := range a.requests {
		if len(result) < most && sort(request) && request.Resource != "leases" {
			result = append(result, request)
		}
	}
	return result
}

// Last returns when the last counted and selected request ended.
func (a *Audit) Last(sort func(Request) bool) time.Time {
	var last time.Time
	for _, request := range a.requests {
		if sort(request) && request.Counts() && request.Ended.After(last) {
			last = request.Ended
		}
	}
	return last
}

// Close closes the log.
func (a *Audit) Close() error { return a.file.Close() }

// AgentPrefix is the prefix of the user agents of programs that measure.
const AgentPrefix = "bench-"

// WithAgent returns a copy of a client configuration with a name that the audit log shows.
func WithAgent(config *rest.Config, agent string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = AgentPrefix + agent
	return config
}

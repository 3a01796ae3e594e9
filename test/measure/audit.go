// Package measure is what the programs that measure have in common: requests of an audit log, CPU time and memory of processes, a
// resource-manager as a process, and tables.
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

// auditEvent is a line of kube-apiserver's audit log, as far as it is needed.
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
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

// Request is one request to kube-apiserver.
type Request struct {
	// Client is the program that sent it, the first word of its user agent.
	Client string
	// User is who sent it, or on whose behalf it was sent.
	User string
	// Verb is that of Kubernetes, or VerbDiscover.
	Verb string
	// Resource is what it was sent to, such as "pods/status".
	Resource string
	Ended    time.Time
	Failed   bool
}

// VerbDiscover is the verb of requests to no resource: kinds, versions, health.
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

// ByManager reports whether a resource-manager, of whatever maker, sent the request.
func (r Request) ByManager() bool { return strings.Contains(r.Client, "resource-manager") }

// ByController reports whether another controller wrote something.
func (r Request) ByController() bool {
	return r.Writes() && r.Resource != "leases" && !r.ByManager() &&
		!strings.HasPrefix(r.Client, AgentPrefix) && r.Client != "kube-apiserver"
}

// Counts reports whether the request counts: leases and watches do not.
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
		result.Resource = event.ObjectRef.Resource
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

// Audit reads the audit log, which grows meanwhile. It is read between what is timed, since that takes a while.
type Audit struct {
	file     io.ReadCloser
	partial  []byte
	watches  map[string]bool // by audit ID: they are logged when they begin and when they end
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

// Read reads what has been logged since, and returns the new requests.
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

// Skip forgets all requests so far.
func (a *Audit) Skip() error {
	_, err := a.Read()
	a.requests = nil
	return err
}

// Settle reads until there has been no request of a sort for a while, or for as long as it may wait.
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

// Count counts the requests of a sort since Skip.
func (a *Audit) Count(sort func(Request) bool) int {
	count := 0
	for _, request := range a.requests {
		if sort(request) {
			count++
		}
	}
	return count
}

// Of counts the requests of a sort since Skip, but for leases.
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

// Last returns when the last counted request of a sort ended.
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

// AgentPrefix begins the user agents of programs that measure.
const AgentPrefix = "bench-"

// WithAgent returns a copy of a client configuration under a name that the audit log shows.
func WithAgent(config *rest.Config, agent string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = AgentPrefix + agent
	return config
}

package main

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

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// auditEvent is a line of kube-apiserver's audit log, as far as it is needed.
type auditEvent struct {
	AuditID    string `json:"auditID"`
	Verb       string `json:"verb"`
	UserAgent  string `json:"userAgent"`
	RequestURI string `json:"requestURI"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

// request is one request to kube-apiserver.
type request struct {
	// client is the program that sent it, the first word of its user agent.
	client string
	// verb is that of Kubernetes, or verbDiscover.
	verb string
	// resource is what it was sent to, such as "pods/status".
	resource string
	ended    time.Time
	failed   bool
}

// verbDiscover is the verb of requests to no resource: kinds, versions, health.
const verbDiscover = "discover"

// ofHealth marks the requests of the health controller.
const ofHealth = " (health)"

func (r request) writes() bool {
	switch r.verb {
	case "get", "list", "watch", verbDiscover:
		return false
	}
	return true
}

// byManager tells whether a resource-manager, of whatever maker, sent the request.
func (r request) byManager() bool { return strings.Contains(r.client, "resource-manager") }

// byController tells whether another controller wrote something.
func (r request) byController() bool {
	return r.writes() && r.resource != "leases" && !r.byManager() &&
		!strings.HasPrefix(r.client, agentPrefix) && r.client != "kube-apiserver"
}

// counts tells whether the request is one that is to be counted; leases and watches are not.
func (r request) counts() bool { return r.verb != "watch" && r.resource != "leases" }

// parseAudit reads a line of the audit log.
func parseAudit(line []byte) (auditID string, _ request, _ error) {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return "", request{}, fmt.Errorf("read a line of the audit log: %w", err)
	}
	client, _, _ := strings.Cut(event.UserAgent, "/")
	result := request{client: client, verb: event.Verb, ended: event.StageTimestamp}
	if event.ObjectRef != nil {
		result.resource = event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			result.resource += "/" + event.ObjectRef.Subresource
		}
		if strings.Contains(event.RequestURI, "fieldManager="+resourcesv1alpha1.HealthFieldManager+"&") {
			result.resource += ofHealth
		}
	} else {
		path, _, _ := strings.Cut(event.RequestURI, "?")
		result.verb, result.resource = verbDiscover, path
	}
	result.failed = event.ResponseStatus != nil && event.ResponseStatus.Code >= 400
	return event.AuditID, result, nil
}

// audit reads the audit log, which grows meanwhile. It is read between what is timed, since that takes a while.
type audit struct {
	file     io.ReadCloser
	partial  []byte
	watches  map[string]bool // by audit ID: they are logged when they begin and when they end
	requests []request
}

func openAudit(path string) (*audit, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &audit{file: file, watches: map[string]bool{}}, nil
}

// read reads what has been logged since, and returns the new requests.
func (a *audit) read() ([]request, error) {
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

func (a *audit) parse(content []byte) error {
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
		if request.verb != "watch" || !a.watches[id] {
			a.requests = append(a.requests, request)
		}
		if request.verb == "watch" {
			a.watches[id] = true
		}
		a.partial, content = a.partial[:0], rest
	}
}

// skip forgets all requests so far.
func (a *audit) skip() error {
	_, err := a.read()
	a.requests = nil
	return err
}

// settle reads until there has been no request of a sort for a while, or for as long as it may wait.
func (a *audit) settle(ctx context.Context, sort func(request) bool, quiet, most time.Duration) error {
	last := time.Now()
	err := wait.PollUntilContextTimeout(ctx, quiet/8, most, true, func(context.Context) (bool, error) {
		fresh, err := a.read()
		for _, request := range fresh {
			if sort(request) && request.ended.After(last) {
				last = request.ended
			}
		}
		return time.Since(last) >= quiet, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil
	}
	return err
}

// count counts the requests of a sort since skip.
func (a *audit) count(sort func(request) bool) int {
	count := 0
	for _, request := range a.requests {
		if sort(request) {
			count++
		}
	}
	return count
}

// ofManager counts the requests of the resource-manager since skip.
func (a *audit) ofManager() tally {
	result := tally{}
	for _, request := range a.requests {
		if request.byManager() && request.resource != "leases" {
			result[request.verb+" "+request.resource]++
			if request.failed {
				result[failedRequests]++
			}
		}
	}
	return result
}

// lastOfManager returns when the last counted request of the resource-manager ended.
func (a *audit) lastOfManager() time.Time {
	var last time.Time
	for _, request := range a.requests {
		if request.byManager() && request.counts() && request.ended.After(last) {
			last = request.ended
		}
	}
	return last
}

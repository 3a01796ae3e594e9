// Package audit reads audit logs of API servers.
package audit

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/trellis-k8s/trellis/test/kit"
)

// Requests returns the requests that a user sent, or that others sent on its behalf, in order, and the number of lines in
// the log. It skips the first lines.
func Requests(tb testing.TB, file, user string, skip int) (found []auditv1.Event, lines int) {
	tb.Helper()
	return read(tb, file, user, skip, auditv1.StageResponseComplete)
}

// RequestsAndWatches returns the same requests, and all watches when they begin.
func RequestsAndWatches(tb testing.TB, file, user string, skip int) (found []auditv1.Event, lines int) {
	tb.Helper()
	return read(tb, file, user, skip, auditv1.StageResponseStarted, auditv1.StageResponseComplete)
}

func read(tb testing.TB, file, user string, skip int, stages ...auditv1.Stage) (found []auditv1.Event, lines int) {
	tb.Helper()
	log, err := os.Open(file)
	kit.Must(tb, err)
	defer log.Close() //nolint:errcheck // only read
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines++
		var event auditv1.Event
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			continue // the last line is incomplete
		}
		if lines > skip && userOf(event) == user && slices.Contains(stages, event.Stage) {
			found = append(found, event)
		}
	}
	kit.Must(tb, scanner.Err())
	return found, lines
}

func userOf(event auditv1.Event) string {
	if event.ImpersonatedUser != nil {
		return event.ImpersonatedUser.Username
	}
	return event.User.Username
}

// Describe returns the verb and the resource of a request.
func Describe(event auditv1.Event) string {
	reference := event.ObjectRef
	if reference == nil {
		path, _, _ := strings.Cut(event.RequestURI, "?")
		return event.Verb + " " + path
	}
	text := event.Verb + " " + reference.Resource
	if reference.Subresource != "" {
		text += "/" + reference.Subresource
	}
	if reference.APIGroup != "" {
		text += "." + reference.APIGroup
	}
	return text
}

// IsWrite reports whether a request stores an object. Reviews do not.
func IsWrite(event auditv1.Event) bool {
	return !slices.Contains([]string{"get", "list", "watch"}, event.Verb) &&
		(event.ObjectRef == nil || event.ObjectRef.Resource != "tokenreviews")
}

// IsForbidden reports whether a request was rejected because of missing rights.
func IsForbidden(event auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code == 403
}

// Described returns the distinct descriptions of the selected requests, sorted.
func Described(events []auditv1.Event, selected func(auditv1.Event) bool) []string {
	var texts []string
	for _, event := range events {
		if selected(event) {
			texts = append(texts, Describe(event))
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

package gardenlet

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

// requests returns what a user has sent, in order and in lines: verb, group, resource, subresource. Those of the first lines of the log are
// left out.
func requests(t *testing.T, file, user string, skip int) (found []auditv1.Event, lines int) {
	t.Helper()
	log, err := os.Open(file)
	kit.Must(t, err)
	defer log.Close()
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines++
		var event auditv1.Event
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			continue // the last line is being written
		}
		if lines > skip && event.User.Username == user && event.Stage == auditv1.StageResponseComplete {
			found = append(found, event)
		}
	}
	kit.Must(t, scanner.Err())
	return found, lines
}

// describe returns the verb and the resource of a request.
func describe(event auditv1.Event) string {
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

// isWrite reports whether something is stored. Reviews are questions.
func isWrite(event auditv1.Event) bool {
	return !slices.Contains([]string{"get", "list", "watch"}, event.Verb) && (event.ObjectRef == nil || event.ObjectRef.Resource != "tokenreviews")
}

// described returns what occurs of the requests, sorted.
func described(events []auditv1.Event, selected func(auditv1.Event) bool) []string {
	var texts []string
	for _, event := range events {
		if selected(event) {
			texts = append(texts, describe(event))
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

func isForbidden(event auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code == 403
}

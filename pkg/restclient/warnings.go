package restclient

import (
	"context"
	"regexp"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// warnings logs warnings of API servers, each text once. Warnings may also come from webhooks and contain parts of a
// Secret, so it logs only texts that the API server itself is known to write.
type warnings struct {
	mu     sync.Mutex
	logged map[string]bool
}

const (
	// warningCode is the code of all warnings of API servers (RFC 7234, 5.5.7).
	warningCode = 299
	// maxWarnings is the maximum number of remembered texts. There are far fewer kinds.
	maxWarnings = 1000
)

// deprecation matches kube-apiserver's warnings about API versions (WarningMessage of
// k8s.io/apiserver/pkg/endpoints/deprecation).
var deprecation = regexp.MustCompile(`^[\w.-]+/\w+ \w+ is deprecated in v1\.\d+\+(, unavailable in v1\.\d+\+)?(; use [\w.-]+/\w+ \w+)?$`)

// HandleWarningHeaderWithContext is called for each warning.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != warningCode || !deprecation.MatchString(text) || !w.first(text) {
		return
	}
	log.FromContext(ctx).Info("The API server returned a warning", "warning", text)
}

// first reports whether a text occurs for the first time.
func (w *warnings) first(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logged[text] || len(w.logged) >= maxWarnings {
		return false
	}
	w.logged[text] = true
	return true
}

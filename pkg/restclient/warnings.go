package restclient

import (
	"context"
	"regexp"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// warnings logs what API servers warn of, each text once. Webhooks may warn as well, and repeat what is in a Secret: only what is known to be
// the API server's own words is logged.
type warnings struct {
	mu   sync.Mutex
	told map[string]bool
}

const (
	// warningCode is that of all warnings of API servers (RFC 7234, 5.5.7).
	warningCode = 299
	// maxWarnings bounds what is remembered; there are far fewer kinds.
	maxWarnings = 1000
)

// deprecation matches kube-apiserver's warnings about versions of kinds (WarningMessage of k8s.io/apiserver/pkg/endpoints/deprecation).
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
	if w.told[text] || len(w.told) >= maxWarnings {
		return false
	}
	w.told[text] = true
	return true
}

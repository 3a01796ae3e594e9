package restclient

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// TestWarnings checks that deprecations are logged once, and that warnings of webhooks, which may contain parts of a Secret,
// are never logged.
func TestWarnings(t *testing.T) {
	var written strings.Builder
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { written.WriteString(args + "\n") }, funcr.Options{}))
	handler := &warnings{logged: map[string]bool{}}
	for _, text := range []string{
		"policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+",
		"policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+",
		"flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema is deprecated in v1.29+, unavailable in v1.32+; use flowcontrol.apiserver.k8s.io/v1 FlowSchema",
		"v1/x A is deprecated in v1.33+", "the password hunter2 is weak", "a/b c is deprecated in v1.1+; use d/e f: hunter2", "",
	} {
		handler.HandleWarningHeaderWithContext(ctx, 299, "-", text)
	}
	handler.HandleWarningHeaderWithContext(ctx, 199, "-", "a/b c is deprecated in v1.1+")
	if got := written.String(); strings.Count(got, "\n") != 3 || strings.Contains(got, "hunter2") || !strings.Contains(got, "FlowSchema") {
		t.Errorf("the log has\n%s", got)
	}
}

package v1alpha1

import (
	"slices"
	"testing"
)

func TestApplyOverrides(t *testing.T) {
	for name, test := range map[string]struct {
		file           string
		source, target string
		extra          []string
		wantSource     string
		wantTarget     string
		wantNamespaces []string
	}{
		"nothing": {
			file:       "sourceClientConnection: {kubeconfig: s}\ntargetClientConnection: {kubeconfig: t, namespaces: [a]}\n",
			wantSource: "s", wantTarget: "t", wantNamespaces: []string{"a"},
		},
		"everything": {
			file:   "sourceClientConnection: {kubeconfig: s}\ntargetClientConnection: {kubeconfig: t, namespaces: [a]}\n",
			source: "/s", target: "/t", extra: []string{"b", "a", "c", "b"},
			wantSource: "/s", wantTarget: "/t", wantNamespaces: []string{"a", "b", "c"},
		},
		"all namespaces stay all namespaces":    {extra: []string{"b"}},
		"the source does not become the target": {source: "/s", wantSource: "/s"},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, minimal+test.file)
			c.ApplyOverrides(test.source, test.target, test.extra)
			if got := c.SourceClientConnection.Kubeconfig; got != test.wantSource {
				t.Errorf("source kubeconfig: got %q, want %q", got, test.wantSource)
			}
			if got := c.TargetClientConnection.Kubeconfig; got != test.wantTarget {
				t.Errorf("target kubeconfig: got %q, want %q", got, test.wantTarget)
			}
			if got := c.TargetClientConnection.Namespaces; !slices.Equal(got, test.wantNamespaces) {
				t.Errorf("target namespaces: got %q, want %q", got, test.wantNamespaces)
			}
		})
	}
}

func TestApplyOverridesBeforeDefaults(t *testing.T) {
	c := &ResourceManagerConfiguration{}
	c.ApplyOverrides("", "/t", nil)
	if c.TargetClientConnection == nil || c.TargetClientConnection.Kubeconfig != "/t" {
		t.Errorf("targetClientConnection: %+v", c.TargetClientConnection)
	}
}

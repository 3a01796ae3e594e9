package manager

import (
	"net/http"
	"slices"
	"testing"

	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// paths is a manager that remembers the paths of its additional handlers.
type paths struct {
	manager.Manager

	added []string
}

func (p *paths) AddMetricsServerExtraHandler(path string, _ http.Handler) error {
	p.added = append(p.added, path)
	return nil
}

// TestAddProfiles checks that profiles are served only if the configuration enables them, because the port needs no credentials.
func TestAddProfiles(t *testing.T) {
	type config = componentbaseconfigv1alpha1.DebuggingConfiguration
	for name, test := range map[string]struct {
		config *config
		served bool
	}{
		"not configured":  {nil, false},
		"empty":           {&config{}, false},
		"off":             {&config{EnableProfiling: ptr.To(false)}, false},
		"contention only": {&config{EnableContentionProfiling: ptr.To(true)}, false},
		"on":              {&config{EnableProfiling: ptr.To(true)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			mgr := &paths{}
			if err := AddProfiles(mgr, test.config); err != nil {
				t.Fatal(err)
			}
			if served := slices.Contains(mgr.added, "/debug/pprof/profile"); served != test.served || !served && len(mgr.added) > 0 {
				t.Errorf("served are %v", mgr.added)
			}
		})
	}
}

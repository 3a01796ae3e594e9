package directive

import "testing"

func TestOf(t *testing.T) {
	for name, test := range map[string]struct {
		key, value string
		want       Directive
	}{
		"mode Ignore":          {"resources.gardener.cloud/mode", "Ignore", Directive{Release: true}},
		"mode ignore":          {"resources.gardener.cloud/mode", "ignore", Directive{}},
		"ignore":               {"resources.gardener.cloud/ignore", "1", Directive{CreateOnly: true, Bare: true}},
		"ignore yes":           {"resources.gardener.cloud/ignore", "yes", Directive{}},
		"keep-object":          {"resources.gardener.cloud/keep-object", "true", Directive{KeepOnPrune: true, KeepOnDelete: true}},
		"delete on invalid":    {"resources.gardener.cloud/delete-on-invalid-update", "T", Directive{Replace: true}},
		"Flux prune":           {"kustomize.toolkit.fluxcd.io/prune", "disabled", Directive{KeepOnPrune: true, KeepOnDelete: true}},
		"Flux prune, Disabled": {"kustomize.toolkit.fluxcd.io/prune", "Disabled", Directive{KeepOnPrune: true, KeepOnDelete: true}},
		"Flux prune enabled":   {"kustomize.toolkit.fluxcd.io/prune", "enabled", Directive{}},
		"Flux Merge":           {"kustomize.toolkit.fluxcd.io/ssa", "Merge", Directive{Merge: true}},
		"Flux IfNotPresent":    {"kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", Directive{CreateOnly: true}},
		"Flux Ignore":          {"kustomize.toolkit.fluxcd.io/ssa", "Ignore", Directive{Release: true}},
		"Flux Override":        {"kustomize.toolkit.fluxcd.io/ssa", "Override", Directive{}},
		"Flux force":           {"kustomize.toolkit.fluxcd.io/force", "enabled", Directive{Replace: true}},
		"Flux reconcile":       {"kustomize.toolkit.fluxcd.io/reconcile", "disabled", Directive{Suspend: true, KeepOnPrune: true, KeepOnDelete: true}},
		"Argo Prune":           {"argocd.argoproj.io/sync-options", "Prune=false", Directive{KeepOnPrune: true}},
		"Argo Delete":          {"argocd.argoproj.io/sync-options", "ServerSideApply=true, Delete=false", Directive{KeepOnDelete: true}},
		"Argo Replace":         {"argocd.argoproj.io/sync-options", "Replace=true", Directive{Replace: true}},
		"Argo Prune=true":      {"argocd.argoproj.io/sync-options", "Prune=true", Directive{}},
		"Argo wave":            {"argocd.argoproj.io/sync-wave", "-5", Directive{Wave: -5}},
		"Argo wave, no number": {"argocd.argoproj.io/sync-wave", "first", Directive{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(map[string]string{test.key: test.value, "other": "x"}); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if !Reads(test.key) || Reads("other") {
				t.Errorf("%s is read: %t", test.key, Reads(test.key))
			}
		})
	}
	if got := Of(nil); got != (Directive{}) {
		t.Errorf("of nothing %+v", got)
	}
}

package applyoptions

import "testing"

func TestOf(t *testing.T) {
	for name, test := range map[string]struct {
		key, value string
		want       Options
	}{
		"mode Ignore":          {"resources.gardener.cloud/mode", "Ignore", Options{Release: true}},
		"mode ignore":          {"resources.gardener.cloud/mode", "ignore", Options{}},
		"ignore":               {"resources.gardener.cloud/ignore", "1", Options{CreateOnly: true, Bare: true}},
		"ignore yes":           {"resources.gardener.cloud/ignore", "yes", Options{}},
		"keep-object":          {"resources.gardener.cloud/keep-object", "true", Options{KeepOnPrune: true, KeepOnDelete: true}},
		"delete on invalid":    {"resources.gardener.cloud/delete-on-invalid-update", "T", Options{Replace: true}},
		"Flux prune":           {"kustomize.toolkit.fluxcd.io/prune", "disabled", Options{KeepOnPrune: true, KeepOnDelete: true}},
		"Flux prune, Disabled": {"kustomize.toolkit.fluxcd.io/prune", "Disabled", Options{KeepOnPrune: true, KeepOnDelete: true}},
		"Flux prune enabled":   {"kustomize.toolkit.fluxcd.io/prune", "enabled", Options{}},
		"Flux Merge":           {"kustomize.toolkit.fluxcd.io/ssa", "Merge", Options{Merge: true}},
		"Flux IfNotPresent":    {"kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", Options{CreateOnly: true}},
		"Flux Ignore":          {"kustomize.toolkit.fluxcd.io/ssa", "Ignore", Options{Release: true}},
		"Flux Override":        {"kustomize.toolkit.fluxcd.io/ssa", "Override", Options{}},
		"Flux force":           {"kustomize.toolkit.fluxcd.io/force", "enabled", Options{Replace: true}},
		"Flux reconcile":       {"kustomize.toolkit.fluxcd.io/reconcile", "disabled", Options{Suspend: true, KeepOnPrune: true, KeepOnDelete: true}},
		"Argo Prune":           {"argocd.argoproj.io/sync-options", "Prune=false", Options{KeepOnPrune: true}},
		"Argo Delete":          {"argocd.argoproj.io/sync-options", "ServerSideApply=true, Delete=false", Options{KeepOnDelete: true}},
		"Argo Replace":         {"argocd.argoproj.io/sync-options", "Replace=true", Options{Replace: true}},
		"Argo Prune=true":      {"argocd.argoproj.io/sync-options", "Prune=true", Options{}},
		"Argo confirmations":   {"argocd.argoproj.io/sync-options", "Prune=confirm,Delete=confirm", Options{KeepOnPrune: true, KeepOnDelete: true}},
		"Helm keep":            {"helm.sh/resource-policy", "keep", Options{KeepOnPrune: true, KeepOnDelete: true}},
		"Helm, Keep":           {"helm.sh/resource-policy", " Keep ", Options{KeepOnPrune: true, KeepOnDelete: true}},
		"Helm, other":          {"helm.sh/resource-policy", "delete", Options{}},
		"Argo wave":            {"argocd.argoproj.io/sync-wave", "-5", Options{Wave: -5}},
		"Argo wave, no number": {"argocd.argoproj.io/sync-wave", "first", Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(map[string]string{test.key: test.value, "other": "x"}); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if !Reads(test.key) || Reads("other") {
				t.Errorf("Reads(%s) is %t", test.key, Reads(test.key))
			}
		})
	}
	if got := Of(nil); got != (Options{}) {
		t.Errorf("without annotations: got %+v", got)
	}
}

package shoot

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// providerWebhooks are the webhooks of an extension for an infrastructure, in one revision of its program.
func providerWebhooks(provider, revision string) []flow.Mutator {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "provider-" + provider}}
	configuration.Webhooks = []admissionregistrationv1.MutatingWebhook{{
		Name:              "controlplane.example.org",
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelShootProvider: provider}},
		ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelMutatedByControlPlaneWebhook: "true"}},
	}}
	return []flow.Mutator{{Configuration: configuration, Revision: revision}}
}

// TestObjectsAreSentAgainWhenAnExtensionChanges checks that a new version of an extension reaches the objects that its webhooks change, and only
// those, at the pace of a new version of gardenlet: their manifests do not change otherwise.
func TestObjectsAreSentAgainWhenAnExtensionChanges(t *testing.T) {
	t.Parallel()
	with := func(mutators []flow.Mutator) flow.Plan {
		return planOf(t, up(t, func(in *Inputs) { in.Shoot.Spec.Provider.Type, in.Mutators = "local", mutators }))
	}
	for name, test := range map[string]struct {
		before, after []flow.Mutator
		again         bool
	}{
		"installed":                 {nil, providerWebhooks("local", ""), true},
		"a new version":             {providerWebhooks("local", "v1"), providerWebhooks("local", "v2"), true},
		"removed":                   {providerWebhooks("local", "v1"), nil, true},
		"the same version":          {providerWebhooks("local", "v1"), providerWebhooks("local", "v1"), false},
		"of another infrastructure": {providerWebhooks("other", "v1"), providerWebhooks("other", "v2"), false},
	} {
		before, after := with(test.before), with(test.after)
		_, changed := changes(t, before, after)
		for i := range changed {
			_, changed[i], _ = strings.Cut(changed[i], "/")
		}
		if before.Inputs != after.Inputs || (before.Program != after.Program) != test.again {
			t.Errorf("%s: counts as declared by the user: %t, by operators: %t", name, before.Inputs != after.Inputs, before.Program != after.Program)
		}
		if !test.again && len(changed) > 0 {
			t.Errorf("%s changes %q", name, changed)
		}
		for _, bundle := range []string{bundleAPIServerService, bundleAPIServer, bundleControllerManager, bundleEtcdMain, bundleEtcdEvents} {
			if slices.Contains(changed, bundle) != test.again {
				t.Errorf("%s: %s is sent again: %t, want %t", name, bundle, !test.again, test.again)
			}
		}
		if at := slices.IndexFunc(changed, func(bundle string) bool { return strings.HasPrefix(bundle, prefixShoot) }); at >= 0 {
			t.Errorf("%s changes %s, which has no labelled object", name, changed[at])
		}
	}
}

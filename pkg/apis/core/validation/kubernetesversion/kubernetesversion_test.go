package kubernetesversion

import "testing"

func TestTables(t *testing.T) {
	for name, gate := range featureGates {
		if !valid(gate.Range) || gate.LockedSince != 0 && !gate.Has(gate.LockedSince) {
			t.Errorf("feature gate %s: %+v", name, gate)
		}
	}
	for name, api := range apis {
		if !valid(api.Range) || (api.Required || api.RequiredByNodes) && api.Range != (Range{First, Last}) {
			t.Errorf("API %s: %+v", name, api)
		}
	}
	for name, plugin := range admissionPlugins {
		if !valid(plugin.Range) || plugin.HasKubeconfig && !plugin.Configurable {
			t.Errorf("admission plugin %s: %+v", name, plugin)
		}
	}
}

func valid(r Range) bool { return First <= r.First && r.First <= r.Last && r.Last <= Last }

func TestFeatureGateOf(t *testing.T) {
	gate, _ := FeatureGateOf("NodeSwap")
	if _, locked := gate.Locked(33); locked {
		t.Error("NodeSwap is locked in 1.33")
	}
	if value, locked := gate.Locked(34); !locked || !value {
		t.Error("NodeSwap is not locked in 1.34")
	}
	if _, locked := gate.Locked(99); locked {
		t.Error("NodeSwap is locked in an unknown version")
	}
	if _, found := FeatureGateOf("Other"); found {
		t.Error("the gate Other is known")
	}
	if gate, _ := FeatureGateOf("KubeletEnsureSecretPulledImages"); gate.Has(32) || !gate.Has(33) || !gate.Has(99) {
		t.Errorf("KubeletEnsureSecretPulledImages: %+v", gate)
	}
}

func TestAPIOf(t *testing.T) {
	for key, want := range map[string]API{
		"v1":                          {Range: Range{32, 37}, Required: true},
		"/v1":                         {Range: Range{32, 37}, Required: true},
		"apps/v1":                     {Range: Range{32, 37}, RequiredByNodes: true},
		"apps/v1/deployments":         {Range: Range{32, 37}},
		"resource.k8s.io/v1":          {Range: Range{34, 37}},
		"resource.k8s.io/v1/devices":  {Range: Range{34, 37}},
		"api/all":                     {Range: Range{32, 37}, Required: true},
		"api/beta":                    {Range: Range{32, 37}},
		"networking.k8s.io/v1alpha1":  {Range: Range{32, 33}},
		"storagemigration.k8s.io/v1":  {Range: Range{37, 37}},
		"certificates.k8s.io/v1beta1": {Range: Range{33, 37}},
	} {
		if got, found := APIOf(key); !found || got != want {
			t.Errorf("%s: %+v, %v", key, got, found)
		}
	}
	for _, key := range []string{"", "v2", "apps/v2", "apps", "apps/v1/", "other.example.org/v1"} {
		if _, found := APIOf(key); found {
			t.Errorf("%q is known", key)
		}
	}
}

package shootconditions

import (
	"strings"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// conditionsOf returns conditions from "Type=Status" texts.
func conditionsOf(text string) []corev1beta1.Condition {
	var all []corev1beta1.Condition
	for one := range strings.FieldsSeq(text) {
		kind, status, _ := strings.Cut(one, "=")
		all = append(all, corev1beta1.Condition{Type: corev1beta1.ConditionType(kind), Status: corev1beta1.ConditionStatus(status)})
	}
	return all
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const none = "none"
	for name, test := range map[string]struct {
		shoot, seed string
		selfHosted  bool
		// set and remove are what changes.
		set, remove string
	}{
		"not a Seed":           {"APIServerAvailable=True EveryNodeReady=True", none, false, "", ""},
		"new Seed":             {"APIServerAvailable=True", "GardenletReady=True ExtensionsReady=False", false, "GardenletReady=True ExtensionsReady=False", ""},
		"changed":              {"APIServerAvailable=True GardenletReady=True ExtensionsReady=True", "GardenletReady=True ExtensionsReady=False", false, "ExtensionsReady=False", ""},
		"nothing changed":      {"APIServerAvailable=True GardenletReady=True", "GardenletReady=True", false, "", ""},
		"not of the Seed now":  {"GardenletReady=True BackupBucketsReady=Unknown", "GardenletReady=True", false, "", "BackupBucketsReady"},
		"not a Seed any more":  {"APIServerAvailable=True GardenletReady=True ExtensionsReady=False", none, false, "", "GardenletReady ExtensionsReady"},
		"other conditions":     {"MadeByOthers=True", none, false, "", ""},
		"an unknown one":       {"", "Invented=True", false, "Invented=True", ""},
		"one of the Shoot":     {"APIServerAvailable=True", "APIServerAvailable=False", false, "", ""},
		"self-hosted":          {"GardenletReady=True ExtensionsReady=False", none, true, "", "ExtensionsReady"},
		"self-hosted, a Seed":  {"GardenletReady=True", "ExtensionsReady=False", true, "ExtensionsReady=False", ""},
		"a Seed without state": {"GardenletReady=True", "", false, "", "GardenletReady"},
	} {
		shoot := &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{Conditions: conditionsOf(test.shoot)}}
		if test.selfHosted {
			shoot.Spec.Provider.Workers = []corev1beta1.Worker{{ControlPlane: &corev1beta1.WorkerControlPlane{}}}
		}
		var seed *corev1beta1.Seed
		if test.seed != none {
			seed = &corev1beta1.Seed{Status: corev1beta1.SeedStatus{Conditions: conditionsOf(test.seed)}}
		}
		set, remove := Decide(shoot, seed)
		var got []string
		for _, condition := range set {
			got = append(got, string(condition.Type)+"="+string(condition.Status))
		}
		var removed []string
		for _, kind := range remove {
			removed = append(removed, string(kind))
		}
		if strings.Join(got, " ") != test.set || strings.Join(removed, " ") != test.remove {
			t.Errorf("%s: sets %q, removes %q", name, got, removed)
		}
	}
}

package explain

import (
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
)

// TestWithoutReported checks that the objects that are already reported are removed from a message of the resource-manager.
func TestWithoutReported(t *testing.T) {
	subject := func(kind, namespace, name string) health.Subject {
		return health.Subject{Kind: kind, Namespace: namespace, Name: name}
	}
	web, role, gone := subject("Deployment", "shop", "web"), subject("Fancy", "", "role"), subject("ConfigMap", "shop", "gone")
	web.Verdict.Unhealthy, web.Notes = "no Pods", "Events:\n* FailedScheduling"
	role.Verdict.Unhealthy = "not fancy"
	gone.Missing = true
	said := health.Healthy([]health.Subject{web, role, gone})
	if said.Status != resourcesv1alpha1.ConditionFalse {
		t.Fatalf("%+v", said)
	}
	tellWeb, tellGone := trouble{Kind: "Deployment", Namespace: "shop", Name: "web"}, trouble{Kind: "ConfigMap", Namespace: "shop", Name: "gone"}
	for name, test := range map[string]struct {
		message string
		told    []trouble
		want    string
	}{
		"nothing was told":   {said.Message, nil, said.Message},
		"by configuration":   {said.Message, []trouble{tellWeb, tellGone}, `Fancy "/role" is unhealthy: not fancy`},
		"all was told":       {said.Message, []trouble{tellWeb, tellGone, {Kind: "Fancy", Name: "role"}}, ""},
		"others are counted": {"Deployment \"shop/web\" is unhealthy: x\nand 3 more", []trouble{tellWeb}, "and 3 more"},
		"of another kind":    {"All is well.", []trouble{tellWeb}, "All is well."},
	} {
		if got := withoutReported(test.message, test.told); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

package extensioncare

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

const (
	both    = "{deployment: {admission: {runtimeCluster: {helm: {}}, virtualCluster: {helm: {}}}}}"
	healthy = "[{type: ResourcesApplied, status: 'True'}, {type: ResourcesHealthy, status: 'True'}, {type: ResourcesProgressing, status: 'False'}]"
	sick    = "[{type: ResourcesApplied, status: 'True'}, {type: ResourcesHealthy, status: 'False', reason: Sick, message: text}]"
	runs    = "[{type: Valid, status: 'True'}, {type: Installed, status: 'True'}, {type: Healthy, status: 'True'}, {type: Progressing, status: 'False'}]"
	fails   = "[{type: Valid, status: 'True'}, {type: Installed, status: 'False', reason: InstallationFailed, message: text}]"
)

// TestApply checks which conditions an Extension has, and what they depend on.
func TestApply(t *testing.T) {
	for name, test := range map[string]struct {
		spec, required string
		resources      map[string]string
		installations  map[string]string
		want           string
	}{
		"nothing":              {"{}", "", nil, nil, ""},
		"no longer needed":     {"{}", "[{type: RuntimeHealthy, status: 'True'}, {type: AdmissionHealthy, status: 'True'}]", nil, nil, ""},
		"in the runtime":       {"{}", "[{type: RequiredRuntime, status: 'True'}]", map[string]string{"extension-a-garden": healthy}, nil, "RuntimeHealthy=True"},
		"sick in the runtime":  {"{}", "[{type: RequiredRuntime, status: 'True'}]", map[string]string{"extension-a-garden": sick}, nil, "RuntimeHealthy=False/Sick"},
		"not in the runtime":   {"{}", "[{type: RequiredRuntime, status: 'True'}]", nil, nil, "RuntimeHealthy=False/ManagedResourceMissing"},
		"in Seeds":             {"{}", "[{type: RequiredVirtual, status: 'True'}]", nil, map[string]string{"a": runs, "b": fails}, "ControllerInstallationsHealthy=True"},
		"fails in a Seed":      {"{}", "[{type: RequiredVirtual, status: 'True'}]", nil, map[string]string{"a": fails}, "ControllerInstallationsHealthy=False/InstallationFailed"},
		"not reported":         {"{}", "[{type: RequiredVirtual, status: 'True'}]", nil, map[string]string{"a": "[]"}, "ControllerInstallationsHealthy=False/MissingValid"},
		"admission":            {both, "", map[string]string{"extension-admission-runtime-a": healthy, "extension-admission-virtual-a": healthy}, nil, "AdmissionHealthy=True"},
		"half of an admission": {both, "", map[string]string{"extension-admission-runtime-a": healthy, "extension-admission-virtual-a": sick}, nil, "AdmissionHealthy=False/Sick"},
	} {
		conditions := "[]"
		if test.required != "" {
			conditions = test.required
		}
		extension := decode[operatorv1alpha1.Extension](t, "{metadata: {name: a}, spec: "+test.spec+", status: {conditions: "+conditions+"}}")
		o := Observation{Extension: extension, Resources: map[string]*resourcesv1alpha1.ManagedResource{}, Now: time.Now()}
		for name, status := range test.resources {
			o.Resources[name] = decode[resourcesv1alpha1.ManagedResource](t, "{metadata: {name: "+name+"}, status: {conditions: "+status+"}}")
		}
		for of, status := range test.installations {
			o.Installations = append(o.Installations, *decode[corev1beta1.ControllerInstallation](t,
				"{metadata: {name: x}, spec: {registrationRef: {name: "+of+"}}, status: {conditions: "+status+"}}"))
		}
		applied, _ := o.Apply(extension.Status.Conditions)
		var got []string
		for _, condition := range applied {
			if strings.HasSuffix(string(condition.Type), "Healthy") {
				text := string(condition.Type) + "=" + string(condition.Status)
				if condition.Status != corev1beta1.ConditionTrue {
					text += "/" + condition.Reason
				}
				got = append(got, text)
			}
		}
		slices.Sort(got)
		if joined := strings.Join(got, ", "); joined != test.want {
			t.Errorf("%s: got %q, want %q", name, joined, test.want)
		}
	}
}

// TestThreshold checks that a failure is Progressing at first.
func TestThreshold(t *testing.T) {
	extension := decode[operatorv1alpha1.Extension](t,
		"{metadata: {name: a}, status: {conditions: [{type: RequiredRuntime, status: 'True'}, {type: RuntimeHealthy, status: 'True'}]}}")
	now := time.Now()
	o := Observation{Extension: extension, Now: now, Thresholds: []gardenletv1alpha1.ConditionThreshold{
		{Type: "RuntimeHealthy", Duration: metav1.Duration{Duration: time.Minute}},
	}}
	conditions, next := o.Apply(extension.Status.Conditions)
	if got := corev1beta1.FindCondition(conditions, "RuntimeHealthy").Status; got != corev1beta1.ConditionProgressing || !next.Equal(now.Add(time.Minute)) {
		t.Errorf("got %s until %s", got, next)
	}
}

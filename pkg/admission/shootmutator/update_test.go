package shootmutator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const profile = `
metadata: {name: cp}
spec:
  type: aws
  kubernetes: {versions: [{version: 1.35.4}, {version: 1.35.9, classification: preview}, {version: 1.34.7, classification: deprecated}]}
  machineImages:
  - {name: linux, versions: [{version: 2.1.0, classification: preview}, {version: 2.0.0}, {version: 1.5.0, inPlaceUpdates: {supported: true}}]}
  machineTypes: [{name: small, cpu: "2", gpu: "0", memory: 4Gi}]
  regions: []`

// TestUpdates checks how updates are completed.
func TestUpdates(t *testing.T) {
	t.Parallel()
	const complete = `{cloudProfile: {kind: CloudProfile, name: cp}, region: r, kubernetes: {version: 1.35.4}, provider: {type: aws, workers: [` +
		`{name: pool, minimum: 1, maximum: 1, machine: {type: small, architecture: amd64, image: {name: linux, version: 1.5.0}}}]}}`
	for name, test := range map[string]struct {
		old, shoot string
		// want are a part of the result and a part of the error.
		want, err string
	}{
		"an image without a version stays":        {complete, strings.Replace(complete, "{name: linux, version: 1.5.0}", "{name: linux}", 1), "version: 1.5.0", ""},
		"the begin of another version":            {complete, strings.Replace(complete, "version: 1.5.0", `version: "2"`, 1), "version: 2.0.0", ""},
		"the begin of no version":                 {complete, strings.Replace(complete, "version: 1.5.0", `version: "3"`, 1), "", "no version of a machine image"},
		"nodes that are updated in place":         {complete, strings.NewReplacer("name: pool", "name: new, updateStrategy: AutoInPlaceUpdate", ", image: {name: linux, version: 1.5.0}", "").Replace(complete), "version: 1.5.0", ""},
		"a version is not lowered":                {strings.Replace(complete, "1.35.4", "1.35.9", 1), strings.Replace(complete, "1.35.4", "\"1.35\"", 1), "version: 1.35.9", ""},
		"a version without a supported one stays": {strings.Replace(complete, "1.35.4", "1.34.7", 1), strings.Replace(complete, "1.35.4", "\"1.34\"", 1), "version: 1.34.7", ""},
		"a version is raised":                     {strings.Replace(complete, "1.35.4", "1.34.7", 1), strings.Replace(complete, "1.35.4", "\"1.35\"", 1), "version: 1.35.4", ""},
		"what was stored without an image may stay": {
			strings.Replace(complete, ", image: {name: linux, version: 1.5.0}", "", 1),
			strings.NewReplacer(", image: {name: linux, version: 1.5.0}", "", "region", "purpose: testing, region").Replace(complete), "machine:\n        architecture: amd64\n        type: small", "",
		},
		"waking up adds all tasks":                   {strings.Replace(complete, "region", "hibernation: {enabled: true}, region", 1), complete, "tasks: deployInfrastructure,deployDNSRecordInternal", ""},
		"a failed Shoot that changes in its windows": {complete, strings.NewReplacer("region", "maintenance: {confineSpecUpdateRollout: true}, region").Replace(complete), `needs-retry-operation: "true"`, ""},
	} {
		objects := []runtime.Object{parse[gardencorev1beta1.CloudProfile](t, profile)}
		old, shoot := parse[gardencorev1beta1.Shoot](t, "spec: "+test.old), parse[gardencorev1beta1.Shoot](t, "spec: "+test.shoot)
		last := &gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateFailed}
		old.Status.LastOperation, shoot.Status.LastOperation = last, last
		request := &admission.Request{Operation: apiadmission.Update, Resource: gardencorev1beta1.Resource("shoots"), Object: shoot, Old: old}
		err := admission.Admit(t.Context(), Plugin.Rules, request, admissiontest.NewGarden(objects, time.Now()))
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error %v, want %q", name, err, test.err)
			continue
		}
		if text, _ := yaml.Marshal(shoot); err == nil && !strings.Contains(string(text), test.want) {
			t.Errorf("%s: got\n%s\nwant %q", name, text, test.want)
		}
	}
}

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

package applyoptions

import (
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// known are the annotations that control how an object is handled.
var known = []string{
	fluxPrune, fluxApply, fluxForce, fluxReconcile, argoOptions, argoWave, helmPolicy, resourcesv1alpha1.AnnotationMode, resourcesv1alpha1.AnnotationIgnore,
	resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate, resourcesv1alpha1.AnnotationKeepObject,
}

// FuzzOf checks that an unknown annotation changes nothing, that no annotation removes a protection that another one adds, and
// that an object is deleted or replaced only if a documented value requests it.
func FuzzOf(f *testing.F) {
	for _, key := range known {
		for _, value := range []string{"true", "T", "disabled", "Disabled ", "Ignore", "IfNotPresent", "merge", "enabled", "Prune=false, Delete=false,Replace=true", "-5", "99999999999999999999"} {
			f.Add(key, value, resourcesv1alpha1.AnnotationKeepObject, "true")
		}
	}
	f.Fuzz(func(t *testing.T, firstKey, first, secondKey, second string) {
		d := Of(map[string]string{firstKey: first, secondKey: second})
		if !Reads(firstKey) && !Reads(secondKey) && d != (Options{}) {
			t.Errorf("unknown annotations %s and %s have an effect: %+v", firstKey, secondKey, d)
		}
		if d.Suspend && (!d.KeepOnPrune || !d.KeepOnDelete) || d.Bare && !d.CreateOnly {
			t.Errorf("%+v contradicts itself", d)
		}
		if with := Of(map[string]string{firstKey: first, secondKey: second, firstKey + "x/y": first}); with != d {
			t.Errorf("got %+v with an unknown annotation, and %+v without it", with, d)
		}
		alone := Of(map[string]string{secondKey: second})
		if firstKey != secondKey && (alone.KeepOnPrune && !d.KeepOnPrune || alone.KeepOnDelete && !d.KeepOnDelete || alone.Suspend && !d.Suspend ||
			alone.CreateOnly && !d.CreateOnly) {
			t.Errorf("%s=%q removes a protection of the object: got %+v, without it %+v", firstKey, first, d, alone)
		}
		said := strings.ToLower(first + " " + second)
		if d.Replace && !strings.Contains(said, "replace=true") && !strings.Contains(said, "force=true") && !strings.Contains(said, "enabled") &&
			!resourcesv1alpha1.Truthy(first) && !resourcesv1alpha1.Truthy(second) {
			t.Errorf("%q and %q allow the replacement of the object", first, second)
		}
		if d.Release && !strings.Contains(said, "ignore") {
			t.Errorf("%q and %q release the object", first, second)
		}
	})
}

package validation_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

// FuzzShoot looks for a Shoot on which defaulting or validation panics, or that is not the same after it was stored and read.
func FuzzShoot(f *testing.F) {
	addExamples(f, "shoot")
	f.Fuzz(func(t *testing.T, data []byte) {
		shoot := &v1beta1.Shoot{}
		fuzz(t, data, shoot, &v1beta1.Shoot{}, func(object *v1beta1.Shoot) { v1beta1.SetDefaultsShoot(object) }, ValidateShoot)
		ValidateShootUpdate(shoot, &v1beta1.Shoot{})
		ValidateShootUpdate(&v1beta1.Shoot{}, shoot)
		ValidateShootStatusUpdate(shoot, shoot)
		noImmutables(t, ValidateShootUpdate(shoot, shoot))
	})
}

// FuzzCloudProfile does the same with a CloudProfile.
func FuzzCloudProfile(f *testing.F) {
	addExamples(f, "cloudprofile")
	f.Fuzz(func(t *testing.T, data []byte) {
		profile := &v1beta1.CloudProfile{}
		fuzz(t, data, profile, &v1beta1.CloudProfile{}, v1beta1.SetDefaultsCloudProfile, ValidateCloudProfile)
		ValidateCloudProfileUpdate(profile, &v1beta1.CloudProfile{})
		ValidateCloudProfileStages(&v1beta1.CloudProfile{}, profile, time.Time{})
		if errs := ValidateCloudProfileStages(profile, profile, time.Unix(1<<31, 0)); len(errs) > 0 {
			t.Fatalf("an unchanged profile takes versions back: %v", errs)
		}
	})
}

func addExamples(f *testing.F, kind string) {
	f.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "fleet", "core", kind+".yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		object, err := yaml.YAMLToJSON(document)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(object)
	}
	f.Add([]byte("{}"))
	f.Add([]byte(`{"spec": {"provider": {"workers": [{}]}}}`))
}

// fuzz decodes an object, sets its defaults, validates it, encodes it as the storage does, and reads it again.
func fuzz[T runtime.Object](t *testing.T, data []byte, object, again T, setDefaults func(T), validate func(T) field.ErrorList) {
	t.Helper()
	if strict, err := kjson.UnmarshalStrict(data, object); err != nil || len(strict) > 0 {
		t.Skip("is refused before its defaults are set")
	}
	setDefaults(object)
	first := object.DeepCopyObject()
	setDefaults(object)
	if !equality.Semantic.DeepEqual(first, object) {
		t.Fatalf("defaults that are set again change the object from\n%s to\n%s", encode(t, first), encode(t, object))
	}
	errs := validate(object)
	_ = errs.ToAggregate()
	if !equality.Semantic.DeepEqual(first, object) {
		t.Fatal("validation changes the object")
	}
	stored := encode(t, object)
	if strict, err := kjson.UnmarshalStrict(stored, again); err != nil || len(strict) > 0 {
		t.Fatalf("the stored object cannot be read: %v, %v\n%s", err, strict, stored)
	}
	setDefaults(again)
	if second := encode(t, again); !bytes.Equal(stored, second) {
		t.Fatalf("stored:\n%s\nread:\n%s", stored, second)
	}
}

func encode(t *testing.T, object any) []byte {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Skip("cannot be encoded: a raw extension is not JSON")
	}
	return content
}

// noImmutables fails if an update that changes nothing is reported as a change.
func noImmutables(t *testing.T, errs field.ErrorList) {
	t.Helper()
	for _, err := range errs {
		if err.Detail == "field is immutable" {
			t.Fatalf("an unchanged object changes: %v", err)
		}
	}
}

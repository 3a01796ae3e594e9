// Package providerlocal tests the example manifests of provider-local.
package providerlocal

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	corevalidation "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/providerlocal/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/provider/local/controllers"
	"github.com/trellis-k8s/trellis/pkg/provider/local/example"
)

// TestExamples reads the manifests strictly, and checks them by the rules of the API. The registration has each controller.
func TestExamples(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := served.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			scheme.Default(object)
			if errs := check(t, object); len(errs) > 0 {
				t.Errorf("%s: %v", file, errs.ToAggregate())
			}
		}
	}
}

func check(t *testing.T, object runtime.Object) field.ErrorList {
	t.Helper()
	switch o := object.(type) {
	case *gardencorev1beta1.ControllerRegistration:
		var types []string
		for _, resource := range o.Spec.Resources {
			types = append(types, resource.Kind+"/"+resource.Type)
		}
		if want := len(controllers.Names()) - 1 + len(example.Types()); len(types) != want || len(slices.Compact(slices.Sorted(slices.Values(types)))) != want {
			t.Errorf("the registration has %v, want %d types", types, want)
		}
		return corevalidation.ValidateControllerRegistration(o)
	case *gardencorev1.ControllerDeployment:
		return corevalidation.ValidateControllerDeployment(o)
	case *gardencorev1beta1.CloudProfile:
		config, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.CloudProfileConfig](o.Spec.ProviderConfig)
		if err != nil {
			t.Fatal(err)
		}
		return append(corevalidation.ValidateCloudProfile(o), validation.ValidateCloudProfileConfig(config, o.Spec.MachineImages, nil)...)
	}
	t.Errorf("%T is not checked", object)
	return nil
}

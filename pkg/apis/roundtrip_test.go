package apis_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// groups are all API groups of the garden, of extensions and of operators.
var groups = []struct {
	name string
	add  func(*runtime.Scheme) error
}{
	{"core.v1", gardencorev1.AddToScheme},
	{"core.v1beta1", gardencorev1beta1.AddToScheme},
	{"security.v1alpha1", securityv1alpha1.AddToScheme},
	{"settings.v1alpha1", settingsv1alpha1.AddToScheme},
	{"seedmanagement.v1alpha1", seedmanagementv1alpha1.AddToScheme},
	{"operations.v1alpha1", operationsv1alpha1.AddToScheme},
	{"authentication.v1alpha1", authenticationv1alpha1.AddToScheme},
	{"extensions.v1alpha1", extensionsv1alpha1.AddToScheme},
	{"operator.v1alpha1", operatorv1alpha1.AddToScheme},
	{"druid.v1alpha1", druidv1alpha1.AddToScheme},
}

// kindsOf returns an object of each kind of a group, without lists.
func kindsOf(t *testing.T, add func(*runtime.Scheme) error) map[schema.GroupVersionKind]runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		t.Fatal(err)
	}
	found := map[schema.GroupVersionKind]runtime.Object{}
	for kind, of := range scheme.AllKnownTypes() {
		if object, is := reflect.New(of).Interface().(runtime.Object); is && strings.Contains(of.PkgPath(), "/trellis/") && !strings.HasSuffix(kind.Kind, "List") {
			found[kind] = object
		}
	}
	return found
}

// TestNoFieldIsLost fills all fields with random values and checks that objects do not change when they are encoded as JSON and
// decoded strictly, both directly and through an unstructured object.
func TestNoFieldIsLost(t *testing.T) {
	for _, group := range groups {
		for kind := range kindsOf(t, group.add) {
			t.Run(group.name+"/"+kind.Kind, func(t *testing.T) {
				scheme := runtime.NewScheme()
				if err := group.add(scheme); err != nil {
					t.Fatal(err)
				}
				codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
				strict := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true})
				for seed := range int64(20) {
					object, err := scheme.New(kind)
					if err != nil {
						t.Fatal(err)
					}
					filler(codecs, seed).Fill(object)
					object.GetObjectKind().SetGroupVersionKind(kind)
					checkRoundTrip(t, strict, object)
				}
			})
		}
	}
}

func checkRoundTrip(t *testing.T, strict runtime.Serializer, object runtime.Object) {
	t.Helper()
	var written bytes.Buffer
	if err := strict.Encode(object, &written); err != nil {
		t.Fatal(err)
	}
	read, _, err := strict.Decode(written.Bytes(), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, written.String())
	}
	if !equality.Semantic.DeepEqual(object, read) {
		t.Fatalf("encoding and decoding changes the object:\n%#v\n%#v", object, read)
	}
	if copied := object.DeepCopyObject(); !equality.Semantic.DeepEqual(object, copied) {
		t.Fatalf("the copy differs from the object:\n%#v\n%#v", object, copied)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	if read, _, err = strict.Decode(again, nil, nil); err != nil || !equality.Semantic.DeepEqual(object, read) {
		t.Fatalf("the conversion through an unstructured object changes the object (%v):\n%#v\n%#v", err, object, read)
	}
}

// filler fills all fields with random values. For a third of the seeds it omits random optional fields.
func filler(codecs serializer.CodecFactory, seed int64) *randfill.Filler {
	nilChance := 0.0
	if seed%3 == 2 {
		nilChance = 0.5
	}
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, valueFuncs), rand.NewSource(seed), codecs).
		NilChance(nilChance).NumElements(1, 2).MaxDepth(30)
}

// valueFuncs fills types whose values have more than one representation in JSON.
func valueFuncs(serializer.CodecFactory) []any {
	return []any{
		func(raw *runtime.RawExtension, c randfill.Continue) {
			*raw = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"example.org/v1","kind":"Config","n":%d}`, c.Uint32())}
		},
		func(raw *apiextensionsv1.JSON, c randfill.Continue) {
			*raw = apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `[%d,{"a":null}]`, c.Uint32())}
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(fmt.Sprintf("%dMi", 1+c.Uint32()>>12))
		},
		func(value *intstr.IntOrString, c randfill.Continue) {
			*value = intstr.FromInt32(c.Int31n(100))
			if c.Bool() {
				*value = intstr.FromString(fmt.Sprintf("%d%%", c.Int31n(100)))
			}
		},
		func(d *metav1.Duration, c randfill.Continue) {
			d.Duration = time.Duration(1 + c.Int63n(int64(time.Hour)))
		},
	}
}

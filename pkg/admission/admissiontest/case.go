package admissiontest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// files has world.json with the objects that exist in each case, and a file with the cases of each plugin.
//
//go:embed testdata
var files embed.FS

// absent stands for a field that does not exist.
const absent = "<absent>"

// testCase is a request and its outcome.
type testCase struct {
	Name          string            `json:"name"`
	Given         []json.RawMessage `json:"given"`
	Configuration json.RawMessage   `json:"configuration"`
	Verb          string            `json:"verb"`
	User          string            `json:"user"`
	Groups        []string          `json:"groups"`
	Object        json.RawMessage   `json:"object"`
	// Of is the object of a request to an existing one, as <kind> <namespace>/<name>.
	Of          string          `json:"of"`
	Patch       json.RawMessage `json:"patch"`
	Subresource string          `json:"subresource"`
	Refused     bool            `json:"refused"`
	Changes     []change        `json:"changes"`
}

// change is a field that the plugin changes. The segments of the path are separated by dots, which keys can have, too.
type change struct {
	Path   string `json:"path"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// Run runs all cases of a plugin. Differences are the names of cases with another outcome on purpose, which
// docs/compatibility.md explains: they are refused although Gardener admits them or the other way round, or change nothing.
func Run(t *testing.T, plugin admission.Plugin, differences ...string) {
	t.Helper()
	different := map[string]bool{}
	for _, name := range differences {
		different[name] = true
	}
	world, cases := []json.RawMessage{}, []testCase{}
	load(t, "world.json", &world)
	load(t, plugin.Name+".json", &cases)
	for _, one := range cases {
		isDifferent := different[one.Name]
		t.Run(one.Name, func(t *testing.T) {
			t.Parallel()
			one.run(t, plugin, decodeAll(t, append(world[:len(world):len(world)], one.Given...)), isDifferent)
		})
		delete(different, one.Name)
	}
	if len(different) > 0 {
		t.Errorf("there are no cases %v", different)
	}
}

func (c *testCase) run(t *testing.T, plugin admission.Plugin, world []runtime.Object, different bool) {
	t.Helper()
	rules := plugin.Rules
	if plugin.Configure != nil {
		var configuration io.Reader
		if len(c.Configuration) > 0 {
			configuration = bytes.NewReader(c.Configuration)
		}
		var err error
		if rules, err = plugin.Configure(configuration); err != nil {
			t.Fatal(err)
		}
	}
	request, garden := c.request(t, world), NewGarden(world, time.Now())
	before := toMap(t, request.Object)
	err := admission.Admit(context.Background(), rules, request, garden)
	if request.Object != nil {
		scheme.Default(request.Object) // as the API server does before it stores the object
	}
	after := toMap(t, request.Object)
	if err == nil {
		err = admission.Validate(context.Background(), rules, request, garden)
	}
	if different && len(c.Changes) > 0 {
		c.Changes, different = nil, false // nothing is changed here
	}
	if refused := err != nil; refused != (c.Refused != different) {
		t.Fatalf("error %v, want one: %v", err, c.Refused != different)
	}
	if err != nil {
		c.runCold(t, rules, world)
		return
	}
	for _, want := range c.Changes {
		if got := lookUp(after, want.Path); !equality.Semantic.DeepEqual(got, want.After) {
			t.Errorf("%s is %v, want %v", want.Path, got, want.After)
		}
	}
	if len(c.Changes) == 0 && !equality.Semantic.DeepEqual(before, after) {
		t.Errorf("the plugin changed the object to %v, want %v", after, before)
	}
}

// runCold checks that a request that is refused is not admitted while the API server knows nothing.
func (c *testCase) runCold(t *testing.T, rules []admission.Rule, world []runtime.Object) {
	t.Helper()
	request, garden := c.request(t, world), NewColdGarden(time.Now())
	err := admission.Admit(context.Background(), rules, request, garden)
	if err == nil {
		err = admission.Validate(context.Background(), rules, request, garden)
	}
	if err == nil {
		t.Error("the request is refused, but admitted by an API server that knows nothing yet")
	}
}

func (c *testCase) request(t *testing.T, world []runtime.Object) *admission.Request {
	t.Helper()
	request := &admission.Request{Subresource: c.Subresource, User: &user.DefaultInfo{Name: c.User, Groups: c.Groups}}
	switch c.Verb {
	case "create":
		request.Operation, request.Object = apiadmission.Create, decode(t, c.Object)
	case "patch":
		request.Operation, request.Old = apiadmission.Update, find(t, world, c.Of)
		patched, err := jsonpatch.MergePatch(encode(t, request.Old), c.Patch)
		if err != nil {
			t.Fatal(err)
		}
		request.Object = decode(t, patched)
	default:
		request.Operation, request.Old = apiadmission.Delete, find(t, world, c.Of)
	}
	stored := request.Object
	if stored == nil {
		stored = request.Old
	}
	object, ok := stored.(client.Object)
	if !ok {
		t.Fatalf("a %T has no metadata", stored)
	}
	kind := object.GetObjectKind().GroupVersionKind()
	request.Kind, request.Resource = kind.GroupKind(), schema.GroupResource{Group: kind.Group, Resource: served.Of(kind).Name}
	request.Namespace, request.Name = object.GetNamespace(), object.GetName()
	return request
}

// find returns an object of the world; the last one if there are several.
func find(t *testing.T, world []runtime.Object, of string) runtime.Object {
	t.Helper()
	kind, key, _ := strings.Cut(of, " ")
	var found runtime.Object
	for _, object := range world {
		typed, ok := object.(client.Object)
		if ok && object.GetObjectKind().GroupVersionKind().Kind == kind && admission.Key(typed.GetNamespace(), typed.GetName()) == key {
			found = object
		}
	}
	if found == nil {
		t.Fatalf("there is no %s", of)
	}
	return found
}

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, served.AddToScheme, gardencorev1beta1.RegisterDefaults, gardencorev1.RegisterConversions)
	if err := builder.AddToScheme(scheme); err != nil {
		panic(err) // The types of this repository contradict each other.
	}
	return scheme
}()

func decodeAll(t *testing.T, texts []json.RawMessage) []runtime.Object {
	t.Helper()
	objects := make([]runtime.Object, 0, len(texts))
	for _, text := range texts {
		objects = append(objects, decode(t, text))
	}
	return objects
}

// decode returns an object with its defaults.
func decode(tb testing.TB, text []byte) runtime.Object {
	tb.Helper()
	meta := &metav1.TypeMeta{}
	unmarshal(tb, text, meta)
	object, err := scheme.New(meta.GroupVersionKind())
	if err != nil {
		tb.Fatal(err)
	}
	unmarshal(tb, text, object)
	scheme.Default(object)
	return object
}

// lookUp returns the value at a path. Each segment is the shortest key that exists, or the index of an item in brackets.
func lookUp(value any, path string) any {
	path = strings.TrimPrefix(path, ".")
	if path == "" {
		return value
	}
	if items, ok := value.([]any); ok && path[0] == '[' {
		index, rest, _ := strings.Cut(path[1:], "]")
		if i, err := strconv.Atoi(index); err == nil && i < len(items) {
			return lookUp(items[i], rest)
		}
		return absent
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return absent
	}
	for end := 0; end <= len(path); end++ {
		if end < len(path) && path[end] != '.' && path[end] != '[' {
			continue
		}
		if child, found := fields[path[:end]]; found {
			return lookUp(child, path[end:])
		}
	}
	return absent
}

func toMap(tb testing.TB, object runtime.Object) map[string]any {
	tb.Helper()
	if object == nil {
		return nil
	}
	fields := map[string]any{}
	unmarshal(tb, encode(tb, object), &fields)
	return fields
}

func encode(tb testing.TB, object any) []byte {
	tb.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func unmarshal(tb testing.TB, text []byte, into any) {
	tb.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		tb.Fatal(err)
	}
}

func load(tb testing.TB, name string, into any) {
	tb.Helper()
	text, err := files.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	unmarshal(tb, text, into)
}

package admissiontest

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// Refusal is a request that the plugin of its case refuses.
type Refusal struct {
	// Plugin and Name identify the case.
	Plugin, Name string
	// Verb is create, patch (as a JSON merge patch), delete or deletecollection.
	Verb string
	// User sends the request, as a member of Groups.
	User   string
	Groups []string
	// Resource, Namespace, Object and Subresource are what the request is about. Object is the name. It is empty for creations and
	// collections.
	Resource                       schema.GroupVersionResource
	Namespace, Object, Subresource string
	// Body is the object or the patch; empty for deletions.
	Body []byte
}

// Refusals returns one world for the refused requests of all cases, and these requests. The objects of a case have names of their own in
// it, so that the cases do not disturb each other.
func Refusals(tb testing.TB) ([]client.Object, []Refusal) {
	tb.Helper()
	shared, refusals := []json.RawMessage{}, []Refusal{}
	load(tb, "world.json", &shared)
	entries, err := files.ReadDir("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	for _, entry := range entries {
		plugin := strings.TrimSuffix(entry.Name(), path.Ext(entry.Name()))
		if plugin == "world" {
			continue
		}
		cases := []testCase{}
		load(tb, entry.Name(), &cases)
		for _, one := range cases {
			if one.Refused {
				one = one.renamed(tb, len(refusals))
				shared, refusals = append(shared, one.Given...), append(refusals, one.refusal(tb, plugin))
			}
		}
	}
	return decodeClientObjects(tb, shared), refusals
}

// renamed returns the case with another name for each object that it adds to the world, wherever the case has the name. Secrets keep
// theirs: those with default domains are the same in all cases.
func (c *testCase) renamed(tb testing.TB, index int) testCase {
	tb.Helper()
	names := map[string]string{}
	for _, given := range c.Given {
		partial := &metav1.PartialObjectMetadata{}
		unmarshal(tb, given, partial)
		if partial.Kind == "Secret" {
			continue
		}
		names[partial.Name] = partial.Name + fmt.Sprintf("%02s", strconv.FormatInt(int64(index), 36))
	}
	other := *c
	other.Given = make([]json.RawMessage, len(c.Given))
	for i, given := range c.Given {
		other.Given[i] = replaced(tb, given, names)
	}
	other.Object, other.Patch = replaced(tb, c.Object, names), replaced(tb, c.Patch, names)
	kind, key, _ := strings.Cut(c.Of, " ")
	if namespace, name, found := strings.Cut(key, "/"); found && names[name] != "" {
		other.Of = kind + " " + namespace + "/" + names[name]
	}
	return other
}

// replaced returns JSON with other values for some strings.
func replaced(tb testing.TB, text json.RawMessage, values map[string]string) json.RawMessage {
	tb.Helper()
	if len(text) == 0 {
		return nil
	}
	var value any
	unmarshal(tb, text, &value)
	return encode(tb, replacedIn(value, values))
}

func replacedIn(value any, values map[string]string) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			value[key] = replacedIn(field, values)
		}
	case []any:
		for i, item := range value {
			value[i] = replacedIn(item, values)
		}
	case string:
		if other, found := values[value]; found {
			return other
		}
	}
	return value
}

func (c *testCase) refusal(tb testing.TB, plugin string) Refusal {
	tb.Helper()
	refusal := Refusal{
		Plugin: plugin, Name: c.Name, Verb: c.Verb, User: c.User, Groups: c.Groups, Subresource: c.Subresource, Body: c.Object,
	}
	var kind string
	if c.Verb == "create" {
		partial := &metav1.PartialObjectMetadata{}
		unmarshal(tb, c.Object, partial)
		kind, refusal.Namespace = partial.Kind, partial.Namespace
	} else {
		of, key, _ := strings.Cut(c.Of, " ")
		kind, refusal.Body = of, c.Patch
		refusal.Namespace, refusal.Object, _ = strings.Cut(key, "/")
	}
	if c.Verb == "deletecollection" {
		refusal.Object = ""
	}
	for _, resource := range served.Resources() {
		if resource.Kind == kind {
			refusal.Resource = resource.GroupVersion().WithResource(resource.Name)
		}
	}
	if refusal.Resource.Resource == "" {
		tb.Fatalf("the API server does not serve %q, the kind of the case %q of %s", kind, c.Name, plugin)
	}
	return refusal
}

func decodeClientObjects(tb testing.TB, texts []json.RawMessage) []client.Object {
	tb.Helper()
	objects := make([]client.Object, 0, len(texts))
	for _, text := range texts {
		object, ok := decode(tb, text).(client.Object)
		if !ok {
			tb.Fatalf("%s has no metadata", text)
		}
		objects = append(objects, object)
	}
	return objects
}

package relations

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func managedResource(name string, dependsOn ...string) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = "garden", name
	for _, text := range dependsOn {
		dependency, err := ParseDependency(text, "garden")
		if err != nil {
			panic(err)
		}
		mr.Spec.DependsOn = append(mr.Spec.DependsOn, dependency)
	}
	return mr
}

// TestDependencies checks that a parsed dependency is written in the same form.
func TestDependencies(t *testing.T) {
	for text, want := range map[string]string{
		"base":                            "garden/base",
		"mr/base":                         "garden/base",
		"seed/base":                       "seed/base",
		"base:Healthy:Changes":            "garden/base",
		"base:Applied":                    "garden/base:Applied",
		"base:Creation":                   "garden/base:Creation",
		"base:RolledOut:Creation":         "garden/base:RolledOut:Creation",
		"base:Creation:RolledOut":         "garden/base:RolledOut:Creation",
		"garden/base:RolledOut:Creation:": "has an invalid \"\"",
		"base:applied":                    "has an invalid \"applied\": after the name, use one of Applied",
		"base:Applied:Healthy":            "has an invalid \"Healthy\"",
		":Applied":                        "has no name",
		"seed/":                           "has no name",
	} {
		dependency, err := ParseDependency(text, "garden")
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		mr := managedResource("shop")
		mr.Spec.DependsOn = []resourcesv1alpha1.Dependency{dependency}
		if got := Of(mr).DependsOn[0].String(); got != want {
			t.Errorf("%s is written as %s, want %s", text, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	for text, want := range map[string]resourcesv1alpha1.IgnoreRule{
		"/metadata/annotations/a~1b": {Paths: []string{"/metadata/annotations/a~1b"}},
		"/metadata/annotations/a:b":  {Paths: []string{"/metadata/annotations/a:b"}},
		"Service:/spec/ports":        {Kind: "Service", Paths: []string{"/spec/ports"}},
		"Deployment.apps:/spec":      {Kind: "Deployment", Group: "apps", Paths: []string{"/spec"}},
		"Worker.extensions.gardener.cloud/pool.a:/metadata/annotations/a:b": {
			Kind: "Worker", Group: "extensions.gardener.cloud", Name: "pool.a", Paths: []string{"/metadata/annotations/a:b"},
		},
	} {
		got, err := ParseRule(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is parsed as %+v: %v", text, got, err)
		}
		if again := textOf(got); len(again) != 1 || again[0] != text {
			t.Errorf("%s is written as %v", text, again)
		}
	}
	for _, text := range []string{"", "Service", "Service:spec", "spec/ports"} {
		if _, err := ParseRule(text); err == nil || !strings.Contains(err.Error(), "JSON pointer") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRelations(t *testing.T) {
	mr := managedResource("shop", "base:RolledOut")
	mr.Spec.DeleteAfter = []resourcesv1alpha1.ManagedResourceReference{{Name: "jobs", Namespace: "seed"}}
	mr.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{OnlyOnChange: []resourcesv1alpha1.IgnoreRule{{Kind: "Worker", Paths: []string{"/a", "/b"}}}}
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationFinalizeDeletionAfter: "60m"}
	for want, mr := range map[string]*resourcesv1alpha1.ManagedResource{
		`{"dependsOn":[{"name":"garden/base","until":"RolledOut","for":"Changes"}],"deletedAfter":["seed/jobs"],` +
			`"onlyOnChange":["Worker:/a","Worker:/b"],"finalizeDeletionAfter":"1h0m0s"}`: mr,
		`{"deletedAfter":[]}`: {Spec: resourcesv1alpha1.ManagedResourceSpec{DeleteAfter: []resourcesv1alpha1.ManagedResourceReference{}}},
		`{}`:                  managedResource("plain"),
	} {
		if got, err := json.Marshal(Of(mr)); err != nil || string(got) != want {
			t.Errorf("got %s, want %s: %v", got, want, err)
		}
	}
	for _, text := range []string{"", "1", "-1h", "0s", "soon"} {
		mr.Annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter] = text
		if after := FinalizesAfter(mr); after != 0 {
			t.Errorf("%q is %s", text, after)
		}
	}
}

func TestDependents(t *testing.T) {
	others := []resourcesv1alpha1.ManagedResource{*managedResource("base"), *managedResource("shop", "base"), *managedResource("jobs")}
	for name, test := range map[string]struct {
		after []resourcesv1alpha1.ManagedResourceReference
		want  []types.NamespacedName
	}{
		"default":       {nil, []types.NamespacedName{{Namespace: "garden", Name: "shop"}}},
		"an empty list": {[]resourcesv1alpha1.ManagedResourceReference{}, nil},
		"a list":        {[]resourcesv1alpha1.ManagedResourceReference{{Name: "jobs"}, {Name: "gone"}}, []types.NamespacedName{{Namespace: "garden", Name: "jobs"}}},
	} {
		mr := managedResource("base")
		mr.Spec.DeleteAfter = test.after
		if got := Dependents(mr, others); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

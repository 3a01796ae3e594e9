package live

import (
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestSubjects(t *testing.T) {
	sick := health.Verdict{Unhealthy: "sick"}
	states := map[string]State{
		"absent":       {Presence: Absent},
		"not-served":   {Presence: KindNotServed, Err: errors.New("no kind")},
		"gone-kind":    {Presence: KindNotServed},
		"well":         {Presence: Present, Observation: Observation{Examined: true}},
		"sick":         {Presence: Present, Observation: Observation{Examined: true, Health: &sick}},
		"exempt":       {Presence: Present, Observation: Observation{Examined: true, Health: &sick, Exempt: true}},
		"not-examined": {Presence: Present},
		"unknown":      {Presence: Unknown, Err: errors.New(`read x: Get "https://api": read tcp 10.0.0.1:53210->10.0.0.2:443: connection reset`)},
		"not-asked":    {},
	}
	want := map[string]health.Subject{
		"absent":       {Missing: true},
		"not-served":   {Missing: true, MissingDetail: "no kind"},
		"gone-kind":    {Missing: true},
		"well":         {},
		"sick":         {Verdict: sick},
		"exempt":       {Verdict: sick, Exempt: true},
		"not-examined": {Pending: true},
		"unknown":      {Unknown: `read x: Get "https://api": read tcp 10.0.0.2:443: connection reset`},
		"not-asked":    {Unknown: "its state is not known"},
	}
	for name, state := range states {
		ref := object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "ns", Name: name}
		expected := want[name]
		expected.Group, expected.Kind, expected.Namespace, expected.Name = "apps", "Deployment", "ns", name
		got := Subjects([]object.Ref{ref, ref}, map[object.Key]State{ref.Key(): state})
		if !reflect.DeepEqual(got, []health.Subject{expected, expected}) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, expected)
		}
	}
	if got := Subjects(nil, nil); len(got) != 0 {
		t.Errorf("without objects, got %v", got)
	}
}

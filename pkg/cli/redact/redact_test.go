package redact

import (
	"reflect"
	"testing"
)

type object = map[string]any

func secret(data object) object {
	return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"annotations": object{
		"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "note": "shown",
	}}, "data": data}
}

func TestOne(t *testing.T) {
	got := secret(object{"password": "aHVudGVyMg=="})
	got["stringData"] = object{"user": "me"}
	One(got)
	want := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"annotations": object{
		"kubectl.kubernetes.io/last-applied-configuration": "***", "note": "shown",
	}}, "data": object{"password": "***"}, "stringData": object{"user": "***"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	other := object{"apiVersion": "v1", "kind": "ConfigMap", "data": object{"colour": "blue"}}
	if One(other); !reflect.DeepEqual(other["data"], object{"colour": "blue"}) {
		t.Errorf("a ConfigMap is redacted: %v", other)
	}
	One(object{"apiVersion": "v1", "kind": "Secret", "data": "not a map", "metadata": nil}) // must not panic
}

func TestBoth(t *testing.T) {
	before := secret(object{"same": "a", "changed": "b", "gone": "c"})
	after := secret(object{"same": "a", "changed": "x", "new": "y"})
	Both(before, after)
	if got := before["data"]; !reflect.DeepEqual(got, object{"same": "***", "changed": "*** (before)", "gone": "***"}) {
		t.Errorf("before: %v", got)
	}
	if got := after["data"]; !reflect.DeepEqual(got, object{"same": "***", "changed": "*** (after)", "new": "***"}) {
		t.Errorf("after: %v", got)
	}
}

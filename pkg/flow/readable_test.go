package flow

import (
	"bytes"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

// TestReadable checks that manifests have the same text as with the conversion of Kubernetes.
func TestReadable(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"b":{"c":[],"d":{},"e":null},"a":[1,"1",[true,"true",{"x":"y"}]]}`,
		`{"integers":[0,-1,9223372036854775807,-9223372036854775808],"floats":[0.5,1.5e300,1e-7,-2.25,1e21]}`,
		`{"strings":["","~","null","yes","No","on","0x1f","0o7","1e3","1.0",".inf","1:30","2001-01-01","=","<<","- x","a: b","# c","*d","&e","!f","%g","@h","\u0060i"]}`,
		`{"lines":["one\n","one\ntwo","one\ntwo\n\n"," leading\n","trailing \n","tab\tinside","\r\n","\u0000\u0007","\u2028","😀","<&>"]}`,
		`{"yes":1,"1":2,"1.5":3,"null":4,"<<":5,"":6,"a b":7,"long":"` + string(bytes.Repeat([]byte("words of a long line "), 20)) + `"}`,
	} {
		want, err := sigsyaml.JSONToYAML([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readable([]byte(text))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %v and\n%s\nwant\n%s", text, err, got, want)
		}
	}
	if _, err := readable([]byte(`{"a":`)); err == nil {
		t.Error("incomplete JSON has no error")
	}
}

package main

import (
	"bytes"
	"testing"
)

func TestPrintTree(t *testing.T) {
	pod := func(name string) node { return node{name: "Pod " + name, state: "Running"} }
	var out bytes.Buffer
	err := printTree(&out, []node{
		{name: "shop", state: "True", children: []node{
			{name: "Service webshop/front", children: []node{{name: "EndpointSlice front-1", state: "2 endpoints"}}},
			{name: "Deployment webshop/größe", state: "2/2 ready", children: []node{
				{name: "ReplicaSet b", state: "2/2 ready", children: []node{pod("b-1"), pod("b-2")}},
			}},
		}},
		{name: "empty", state: "Unknown"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `  shop                          True
  ├─ Service webshop/front
  │  └─ EndpointSlice front-1   2 endpoints
  └─ Deployment webshop/größe   2/2 ready
     └─ ReplicaSet b            2/2 ready
        ├─ Pod b-1              Running
        └─ Pod b-2              Running

  empty                         Unknown
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestPrintTable(t *testing.T) {
	var out bytes.Buffer
	if err := printTable(&out, []string{"NAME", "MESSAGE"}, [][]string{{"a-long-name", "fine"}, {"b", ""}}); err != nil {
		t.Fatal(err)
	}
	const want = "  NAME          MESSAGE\n  a-long-name   fine\n  b\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestShorten(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"exactly 10", "exactly 10"},
		{"two\n lines", "two lines"},
		{"more than ten characters", "more than…"},
		{"äöüäöüäöüäöü", "äöüäöüäöü…"},
	} {
		if got := shorten(test.text, 10); got != test.want {
			t.Errorf("shorten(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

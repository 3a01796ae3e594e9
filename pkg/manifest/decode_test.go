package manifest

import (
	"fmt"
	"strings"
	"testing"
)

func TestDecodeFindsObjects(t *testing.T) {
	const jsonA, jsonB = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`
	a, b := configMap("a"), configMap("b")

	for name, test := range map[string]struct {
		text string
		want string
	}{
		"nothing":                            {"", ""},
		"blanks":                             {" \n\n", ""},
		"one document":                       {a, "a"},
		"without a newline at the end":       {strings.TrimSpace(a), "a"},
		"two documents":                      {a + "---\n" + b, "a b"},
		"separator first":                    {"---\n" + a, "a"},
		"separator last":                     {a + "---\n", "a"},
		"separator without newline":          {a + "---", "a"},
		"separators in a row":                {"---\n---\n" + a + "---\n---\n---\n" + b, "a b"},
		"separator with blanks":              {a + "---  \t\n" + b, "a b"},
		"separator with a comment":           {a + "--- # next\n" + b, "a b"},
		"comments alone":                     {"# nothing here\n", ""},
		"comments between":                   {a + "---\n# nothing\n---\n" + b, "a b"},
		"null":                               {a + "---\nnull\n---\n~\n---\n" + b, "a b"},
		"empty objects":                      {"{}\n---\n" + a, "a"},
		"dashes in a block scalar":           {a + "data:\n  text: |\n    x\n    ---\n    y\n---\n" + b, "a b"},
		"Windows line ends":                  {strings.ReplaceAll(a+"---\n"+b, "\n", "\r\n"), "a b"},
		"byte order mark":                    {"\ufeff" + a + "---\n" + b, "a b"},
		"byte order mark before ---":         {"\ufeff---\n" + a + "---\n" + b, "a b"},
		"byte order mark in between":         {a + "---\n\ufeff" + b, "a b"},
		"JSON":                               {jsonA, "a"},
		"JSON with blanks around":            {" \n" + jsonA + "\n ", "a"},
		"JSON objects in lines":              {jsonA + "\n" + jsonB, "a b"},
		"JSON objects without a separator":   {jsonA + jsonB, "a b"},
		"JSON objects as YAML documents":     {jsonA + "\n---\n" + jsonB, "a b"},
		"JSON, then YAML":                    {jsonA + "\n---\n" + b, "a b"},
		"empty objects in a JSON stream":     {"{}" + jsonA + "{} null " + jsonB, "a b"},
		"flow style that is not JSON":        {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "a"},
		"anchors and merge keys":             {"x: &x {name: a}\nkind: ConfigMap\nmetadata:\n  <<: *x\n", "a"},
		"a List":                             {`{"kind":"List","apiVersion":"v1","items":[` + jsonA + "," + jsonB + "]}", "a b"},
		"a List among others":                {jsonB + `{"kind":"List","items":[` + jsonA + "]}" + jsonB, "b a b"},
		"an empty List":                      {`{"kind":"List","apiVersion":"v1","items":[]}`, ""},
		"items of something that is no list": {"kind: Basket\nmetadata: {name: a}\nitems: [{}]\n", "a"},
		"a list kind without items":          {"kind: AllowList\nmetadata: {name: a}\n", "a"},
		"a list kind whose items are a map":  {"kind: AllowList\nmetadata: {name: a}\nitems: {}\n", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeText(test.text)
			if len(problems) > 0 {
				t.Errorf("problems: %v", textsOf(problems))
			}
			if got := namesOf(documents); got != test.want {
				t.Errorf("got the objects %q, want %q", got, test.want)
			}
		})
	}
}

func TestDecodeReadsKeysInOrderAndDecompresses(t *testing.T) {
	documents, problems := decodeSecret(secretWith(map[string]string{
		"b.yaml":       configMap("second"),
		"a.yaml.br":    compress(t, []byte(configMap("first"))),
		"c.br":         compress(t, nil),
		"not-a-suffix": configMap("fourth"),
		"d.br.yaml":    configMap("third"),
	}), testLimits())

	if len(problems) > 0 {
		t.Errorf("problems: %v", textsOf(problems))
	}
	if got, want := namesOf(documents), "first second third fourth"; got != want {
		t.Errorf("got the objects %q, want %q", got, want)
	}
}

func TestDecodeSaysWhereObjectsWereRead(t *testing.T) {
	text := configMap("a") + "---\n# empty\n---\n" + configMap("b") +
		"---\nkind: ConfigMapList\napiVersion: v1\nitems: [{metadata: {name: c}}, {metadata: {name: d}}]\n"
	documents, problems := decodeText(text)
	if len(problems) > 0 {
		t.Fatalf("problems: %v", textsOf(problems))
	}
	const place = "in 'a.yaml' in secret 'garden/manifests'"
	want := []string{
		"at index 0 " + place,
		"at index 2 " + place,
		"in item 0 of the ConfigMapList at index 3 " + place,
		"in item 1 of the ConfigMapList at index 3 " + place,
	}
	if len(documents) != len(want) {
		t.Fatalf("got %d objects, want %d", len(documents), len(want))
	}
	for i, document := range documents {
		if document.Source != want[i] {
			t.Errorf("object %d: source %q, want %q", i, document.Source, want[i])
		}
	}
}

func TestDecodeCompletesItemsOfTypedLists(t *testing.T) {
	for name, test := range map[string]struct {
		text               string
		apiVersion, kindOf any
	}{
		"neither given":  {`{"kind":"RoleList","apiVersion":"rbac.authorization.k8s.io/v1","items":[{}]}`, "rbac.authorization.k8s.io/v1", "Role"},
		"both given":     {`{"kind":"RoleList","apiVersion":"x/v1","items":[{"apiVersion":"y/v2","kind":"Z"}]}`, "y/v2", "Z"},
		"kind given":     {`{"kind":"RoleList","apiVersion":"x/v1","items":[{"kind":"Z"}]}`, "x/v1", "Z"},
		"no version":     {`{"kind":"RoleList","items":[{}]}`, nil, "Role"},
		"untyped List":   {`{"kind":"List","apiVersion":"v1","items":[{}]}`, nil, nil},
		"untyped, given": {`{"kind":"List","apiVersion":"v1","items":[{"apiVersion":"y/v2","kind":"Z"}]}`, "y/v2", "Z"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeText(test.text)
			if len(problems) > 0 || len(documents) != 1 {
				t.Fatalf("got %d objects and %v, want one object", len(documents), textsOf(problems))
			}
			object := documents[0].Object
			if object["apiVersion"] != test.apiVersion || object["kind"] != test.kindOf {
				t.Errorf("got %v %v, want %v %v", object["apiVersion"], object["kind"], test.apiVersion, test.kindOf)
			}
		})
	}
}

func TestDecodeKeepsNumbers(t *testing.T) {
	const big = int64(9007199254740993) // the first integer that a float64 does not hold
	for name, text := range map[string]string{
		"JSON": fmt.Sprintf(`{"kind":"A","big":%d,"float":1.5}`, big),
		"YAML": fmt.Sprintf("kind: A\nbig: %d\nfloat: 1.5\n", big),
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeText(text)
			if len(problems) > 0 || len(documents) != 1 {
				t.Fatalf("got %d objects and %v, want one object", len(documents), textsOf(problems))
			}
			if got := documents[0].Object["big"]; got != big {
				t.Errorf("got %T %v, want int64 %d", got, got, big)
			}
			if got := documents[0].Object["float"]; got != 1.5 {
				t.Errorf("got %T %v, want 1.5", got, got)
			}
		})
	}
}

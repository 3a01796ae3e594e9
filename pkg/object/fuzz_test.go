package object

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzBody checks that a body decodes to the object, that equal objects have equal bodies, and that a precondition changes
// nothing else.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a"},"kind":"A","data":{"<":"\u2028","b":[1,2.5,null]}}`), "12")
	f.Add([]byte(`{"metadata":{"name":"a"}}`), "\x00\a\x7f\"\\ \xff \U0001f600")
	f.Add([]byte(`{"a":1,"metadata":{"uid":"old","name":"a"},"metadatb":{}}`), "")
	f.Fuzz(func(t *testing.T, content []byte, value string) {
		var obj map[string]any
		if json.Unmarshal(content, &obj) != nil {
			return
		}
		meta, _ := obj["metadata"].(map[string]any)
		if len(meta) == 0 {
			return
		}
		body, err := EncodeBody(obj)
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, body)
		if !reflect.DeepEqual(got, obj) || !bytes.HasPrefix(body, []byte(bodyStart)) {
			t.Fatalf("%s is not %v", body, obj)
		}
		if again, err := EncodeBody(got); err != nil || !bytes.Equal(again, body) || Digest(again) != Digest(body) {
			t.Fatalf("%s, then %s, %v", body, again, err)
		}
		delete(meta, "precondition")
		if len(meta) == 0 {
			return
		}
		if body, err = EncodeBody(obj); err != nil {
			t.Fatal(err)
		}
		quoted, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(quoted, &want); err != nil {
			t.Fatal(err)
		}
		required := read(t, Require(body, "precondition", value))
		requiredMeta, _ := required["metadata"].(map[string]any)
		if requiredMeta["precondition"] != want {
			t.Fatalf("the precondition is %q, want %q", requiredMeta["precondition"], want)
		}
		delete(requiredMeta, "precondition")
		if !reflect.DeepEqual(required, obj) {
			t.Fatalf("%v has become %v", obj, required)
		}
	})
}

func read(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal(body, &obj); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return obj
}

// FuzzDigest checks that different lists of parts have different digests, also if only the boundaries between the parts differ.
func FuzzDigest(f *testing.F) {
	f.Add([]byte("ab"), []byte("c"), uint8(1))
	f.Add([]byte("1:"), []byte("1:a"), uint8(0))
	f.Fuzz(func(t *testing.T, first, second []byte, at uint8) {
		digest := Digest(first, second)
		if Digest(bytes.Clone(first), bytes.Clone(second)) != digest || len(digest) != 11 {
			t.Fatalf("the digest is %q, but differs the next time", digest)
		}
		whole := append(bytes.Clone(first), second...)
		split := int(at) % (len(whole) + 1)
		for name, parts := range map[string][][]byte{
			"joined": {whole}, "divided elsewhere": {whole[:split], whole[split:]}, "with an empty part": {first, second, nil},
			"with an empty part first": {nil, first, second}, "the first alone": {first}, "in the other order": {second, first},
		} {
			same := len(parts) == 2 && bytes.Equal(parts[0], first) && bytes.Equal(parts[1], second)
			if (Digest(parts...) == digest) != same {
				t.Errorf("%q and %q have the same digest as %s", first, second, name)
			}
		}
	})
}

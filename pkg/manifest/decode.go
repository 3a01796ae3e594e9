// Package manifest decodes the manifests in Secrets and renders the objects to be applied. It handles decompression,
// limits, splitting, parsing, namespaces, ownership metadata and preserved fields. It has no side effects and sends no
// requests.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// maxProblems limits the number of problems that are kept for one Secret. Further problems are only counted.
const maxProblems = 20

// Document is an object in a Secret.
type Document struct {
	Object map[string]any
	// Source is the location of the object, such as: at index 2 in 'objects.yaml' in secret 'shop/manifests'.
	Source string
	// Duplicates names the keys that occur twice in a mapping of the document; empty if there are none.
	Duplicates string
}

// Decode returns the objects in a Secret, in the order in which the controller reads them. The error joins the problems
// with content that could not be read. The other objects are still returned.
func Decode(secret *corev1.Secret, limits Limits) ([]Document, error) {
	documents, errs := decodeSecret(secret, limits)
	return documents, errors.Join(errs...)
}

// decodeSecret returns the objects in the data of a Secret: keys in ascending order, documents in their order, the
// items of a list in place of the list. Content that cannot be read results in a problem, and the rest is still read.
// Problems do not repeat the content.
func decodeSecret(secret *corev1.Secret, limits Limits) ([]Document, []error) {
	return newDecoder(secret, limits).decode(secret.Data)
}

func newDecoder(secret *corev1.Secret, limits Limits) *decoder {
	limits.Bytes = min(limits.Bytes, greatestSize)
	return &decoder{secret: secret.Namespace + "/" + secret.Name, limits: limits, bytesLeft: limits.Bytes}
}

func (d *decoder) decode(data map[string][]byte) ([]Document, []error) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		d.decodeKey(key, data[key])
	}
	if more := d.failures - len(d.problems); more > 0 {
		d.problems[maxProblems-1] = fmt.Errorf("%w (and %d more in secret '%s')", d.problems[maxProblems-1], more, d.secret)
	}
	return d.documents, d.problems
}

type decoder struct {
	secret    string
	limits    Limits
	bytesLeft int64
	// wasted counts the bytes of keys that could not be read.
	wasted int64
	// seen counts documents and items, valid or not, and values their fields, items and lines.
	seen, values int
	documents    []Document
	// failures counts the problems. Only the first ones are kept.
	failures int
	problems []error
}

func (d *decoder) fail(source string, err error) {
	d.failures++
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, fmt.Errorf("could not decode resource %s: %w", source, err))
	}
}

// count counts a document or an item. It returns false if the limit is exceeded, which it reports once.
func (d *decoder) count(source string) bool {
	d.seen++
	if d.seen == d.limits.Documents+1 {
		d.fail(source, fmt.Errorf("the secret contains more than %d objects: this one and all later ones are skipped; split it",
			d.limits.Documents))
	}
	return d.seen <= d.limits.Documents
}

func (d *decoder) decodeKey(key string, value []byte) {
	content, err := d.plain(key, value)
	if err != nil {
		d.fail(fmt.Sprintf("'%s' in secret '%s'", key, d.secret), err)
		return
	}
	values := valuesIn(content)
	if d.values+values > d.limits.Values {
		d.fail(fmt.Sprintf("'%s' in secret '%s'", key, d.secret), fmt.Errorf("the manifests in this secret have more than %d fields, items "+
			"and lines; split them", d.limits.Values))
		return
	}
	d.values += values
	index := 0
	for _, chunk := range splitYAML(bytes.TrimPrefix(content, byteOrderMark)) {
		if len(bytes.TrimSpace(chunk)) == 0 {
			continue
		}
		read, more := d.decodeChunk(key, index, chunk)
		if !more {
			return
		}
		index += read
	}
}

// decodeChunk decodes one YAML document or a sequence of JSON values. It returns the number of values that it read, and
// false if the limit is exceeded.
func (d *decoder) decodeChunk(key string, index int, chunk []byte) (int, bool) {
	values, err := jsonValues(chunk, d.limits.Documents+1)
	if len(values) == 0 {
		source := d.source(key, index)
		if !d.count(source) {
			return 0, false
		}
		value, duplicates, err := parseYAML(chunk, d.limits.Bytes, d.limits.Depth)
		if err != nil {
			d.fail(source, err)
		} else {
			d.decodeValue(source, value, duplicates)
		}
		return 1, true
	}
	for i, raw := range values {
		source := d.source(key, index+i)
		if !d.count(source) {
			return 0, false
		}
		value, duplicates, err := parseJSON(raw)
		if err != nil {
			d.fail(source, err)
			continue
		}
		d.decodeValue(source, value, duplicates)
	}
	if err != nil {
		d.fail(d.source(key, index+len(values)), notJSON(err))
	}
	return len(values) + 1, true
}

// jsonValues returns the values of a JSON stream up to the first error, and at most limit values.
func jsonValues(chunk []byte, limit int) ([]json.RawMessage, error) {
	if !utilyaml.IsJSONBuffer(chunk) {
		return nil, nil
	}
	var values []json.RawMessage
	stream := json.NewDecoder(bytes.NewReader(chunk))
	for len(values) < limit {
		var value json.RawMessage
		err := stream.Decode(&value)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return values, err
		}
		values = append(values, value)
	}
	return values, nil
}

func (d *decoder) source(key string, index int) string {
	return fmt.Sprintf("at index %d in '%s' in secret '%s'", index, key, d.secret)
}

func (d *decoder) decodeValue(source string, value any, duplicates []string) {
	if value == nil {
		return // an empty document, such as one with only comments
	}
	object, ok := value.(map[string]any)
	if !ok {
		d.fail(source, errors.New("it is not an object with apiVersion and kind"))
		return
	}
	if len(object) == 0 {
		return
	}
	if exceedsDepth(value, d.limits.Depth) {
		d.fail(source, fmt.Errorf("its fields are nested deeper than %d levels", d.limits.Depth))
		return
	}
	first := len(d.documents)
	d.add(source, object)
	if len(duplicates) > 0 && len(d.documents) > first {
		d.documents[first].Duplicates = describeDuplicates(source, duplicates)
	}
}

// add appends an object, or the items of a list.
func (d *decoder) add(source string, object map[string]any) {
	kind, _ := object["kind"].(string)
	items, isList := object["items"].([]any)
	isList = isList || kind == "List" && object["items"] == nil
	if !isList || !strings.HasSuffix(kind, "List") {
		d.documents = append(d.documents, Document{Object: object, Source: source})
		return
	}
	for i, item := range items {
		itemSource := fmt.Sprintf("in item %d of the %s %s", i, kind, source)
		if !d.count(itemSource) {
			return
		}
		itemObject, ok := item.(map[string]any)
		if !ok {
			d.fail(itemSource, errors.New("it is not an object"))
			continue
		}
		// The API server omits apiVersion and kind in the items of a typed list.
		if kind != "List" {
			setDefault(itemObject, "apiVersion", object["apiVersion"])
			setDefault(itemObject, "kind", strings.TrimSuffix(kind, "List"))
		}
		d.add(itemSource, itemObject)
	}
}

func setDefault(object map[string]any, key string, value any) {
	if _, set := object[key]; !set && value != nil {
		object[key] = value
	}
}

func exceedsDepth(value any, depth int) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if depth == 0 || exceedsDepth(field, depth-1) {
				return true
			}
		}
	case []any:
		for _, item := range value {
			if depth == 0 || exceedsDepth(item, depth-1) {
				return true
			}
		}
	}
	return false
}

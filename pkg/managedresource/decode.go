package managedresource

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// compressedSuffix marks a data key whose value is compressed with Brotli.
const compressedSuffix = ".br"

// Limits bound what one Secret may hold, so that no content can exhaust the process.
type Limits struct {
	// Bytes of all manifests in one Secret after decompression.
	Bytes int64
	// Documents in one Secret, the items of lists included.
	Documents int
	// Depth to which the fields of one document may be nested.
	Depth int
}

// DefaultLimits are far above what real Secrets hold: the API server takes Secrets of up to 1 MiB, and etcd requests
// of up to 1.5 MiB, which real manifests compress by a factor of 10 to 20.
func DefaultLimits() Limits {
	return Limits{Bytes: 64 << 20, Documents: 20_000, Depth: 200}
}

// document is one object as it was read.
type document struct {
	object map[string]any
	// source says where the object was read, such as: at index 2 in 'objects.yaml' in secret 'shop/manifests'.
	source string
}

// problem is a part of the input that could not be read.
type problem struct {
	// reason is that of the condition.
	reason string
	err    error
	// transient problems may be gone at the next try.
	transient bool
}

// decodeSecret returns the objects in a Secret's data: keys in ascending order, documents in theirs, the items of lists
// in the place of the list. What cannot be read becomes a problem and does not keep the rest from being read.
func decodeSecret(secret *corev1.Secret, limits Limits) ([]document, []problem) {
	d := &decoder{secret: secret.Namespace + "/" + secret.Name, limits: limits, bytesLeft: limits.Bytes}
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		d.decodeKey(key, secret.Data[key])
	}
	return d.documents, d.problems
}

type decoder struct {
	secret    string
	limits    Limits
	bytesLeft int64
	documents []document
	problems  []problem
}

func (d *decoder) fail(source string, err error) {
	d.problems = append(d.problems, problem{
		reason: resourcesv1alpha1.ReasonDecodingFailed,
		err:    fmt.Errorf("could not decode resource %s: %w", source, err),
	})
}

func (d *decoder) decodeKey(key string, value []byte) {
	content, err := d.plain(key, value)
	if err != nil {
		d.fail(fmt.Sprintf("'%s' in secret '%s'", key, d.secret), err)
		return
	}
	if d.decodeJSONStream(key, content) {
		return
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for index := 0; ; index++ {
		raw, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		source := d.source(key, index)
		if err != nil {
			d.fail(source, err)
			return
		}
		asJSON, err := yaml.YAMLToJSON(raw)
		if err != nil {
			d.fail(source, withoutContent(err))
			continue
		}
		d.decodeDocument(source, asJSON)
	}
}

func (d *decoder) source(key string, index int) string {
	return fmt.Sprintf("at index %d in '%s' in secret '%s'", index, key, d.secret)
}

// plain returns a key's value decompressed, and takes its size from what the Secret may hold.
func (d *decoder) plain(key string, value []byte) ([]byte, error) {
	if strings.HasSuffix(key, compressedSuffix) {
		var err error
		value, err = io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(value)), d.bytesLeft+1))
		if err != nil {
			return nil, fmt.Errorf("decompress with brotli: %w (the value is truncated or not brotli)", err)
		}
	}
	if int64(len(value)) > d.bytesLeft {
		return nil, fmt.Errorf("the manifests in this secret exceed %d bytes when decompressed; "+
			"split them or raise controllers.managedResource.maxSecretSize", d.limits.Bytes)
	}
	d.bytesLeft -= int64(len(value))
	return value, nil
}

// decodeJSONStream decodes content that is a sequence of JSON objects. It returns false, and has done nothing, if the
// content is something else.
func (d *decoder) decodeJSONStream(key string, content []byte) bool {
	if !utilyaml.IsJSONBuffer(content) {
		return false
	}
	var raws []json.RawMessage
	stream := json.NewDecoder(bytes.NewReader(content))
	for {
		var raw json.RawMessage
		err := stream.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false
		}
		raws = append(raws, raw)
	}
	for index, raw := range raws {
		d.decodeDocument(d.source(key, index), raw)
	}
	return true
}

func (d *decoder) decodeDocument(source string, asJSON []byte) {
	var value any
	if err := utiljson.Unmarshal(asJSON, &value); err != nil {
		d.fail(source, withoutContent(err))
		return
	}
	if value == nil {
		return // an empty document, such as one of comments alone
	}
	object, ok := value.(map[string]any)
	if !ok {
		d.fail(source, fmt.Errorf("it is not an object with apiVersion and kind"))
		return
	}
	if len(object) == 0 {
		return
	}
	if exceedsDepth(value, d.limits.Depth) {
		d.fail(source, fmt.Errorf("its fields are nested deeper than %d levels", d.limits.Depth))
		return
	}
	d.add(source, object)
}

// add appends an object, or the items of a list.
func (d *decoder) add(source string, object map[string]any) {
	kind, _ := object["kind"].(string)
	items, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		d.append(source, object)
		return
	}
	for i, item := range items {
		itemSource := fmt.Sprintf("in item %d of the %s %s", i, kind, source)
		itemObject, ok := item.(map[string]any)
		if !ok {
			d.fail(itemSource, fmt.Errorf("it is not an object"))
			continue
		}
		// The API server leaves apiVersion and kind out of the items of a typed list.
		if kind != "List" {
			setDefault(itemObject, "apiVersion", object["apiVersion"])
			setDefault(itemObject, "kind", strings.TrimSuffix(kind, "List"))
		}
		d.append(itemSource, itemObject)
	}
}

func (d *decoder) append(source string, object map[string]any) {
	switch count := len(d.documents); {
	case count < d.limits.Documents:
		d.documents = append(d.documents, document{object: object, source: source})
	case !d.full():
		d.fail(source, fmt.Errorf("%w: it and all after it are left out", errTooManyDocuments))
	}
}

var errTooManyDocuments = errors.New("the secret holds too many objects; split it")

// full tells whether the limit of documents was reached and reported.
func (d *decoder) full() bool {
	return slices.ContainsFunc(d.problems, func(p problem) bool { return errors.Is(p.err, errTooManyDocuments) })
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

// quoted matches what parsers repeat of their input.
var quoted = regexp.MustCompile("'[^']*'|`[^`]*`|\"[^\"]*\"")

// withoutContent takes quotations of the input out of a parser's message: the input may be a Secret.
func withoutContent(err error) error {
	return errors.New(quoted.ReplaceAllString(err.Error(), "…"))
}

// Package manifestsecret writes objects into Secrets in the format that the resource-manager reads: as YAML that is
// compressed above a threshold, divided among as many Secrets as necessary, each named after its content.
package manifestsecret

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/references"
)

// Keys of the data of Secrets.
const (
	PlainKey      = "data.yaml"
	CompressedKey = "data.yaml.br"
)

// compressionLevel is the Brotli level. It takes a tenth of the time of the highest level (11), and the results are
// only a few percent larger.
const compressionLevel = 9

// MaxData is the maximum size of the data of a Secret in bytes. It is slightly below the limit of the API server
// (corev1.MaxSecretSize).
const MaxData = 1_000_000

// Document is an object as YAML, without a document separator.
type Document struct {
	// Name identifies the object in error messages.
	Name string
	Text []byte
}

// Options control how documents are written.
type Options struct {
	// Namespace is the namespace of the Secrets, and Name the prefix of their names.
	Namespace, Name string
	// CompressFrom is the size in bytes from which the text of a Secret is compressed.
	CompressFrom int
	// MaxBytes and MaxDocuments are the limits of the reader for one Secret before compression.
	MaxBytes     int64
	MaxDocuments int
}

// Secrets returns immutable Secrets that contain the documents and have the label of the garbage collector. Equal
// documents in the same order result in equal Secrets. It returns an error if a document is too large or the name is
// invalid.
func Secrets(documents []Document, options Options) ([]*corev1.Secret, error) {
	if len(documents) == 0 {
		return nil, errors.New("the manifests contain no objects")
	}
	data, err := divide(documents, options)
	if err != nil {
		return nil, err
	}
	secrets := make([]*corev1.Secret, 0, len(data))
	for _, content := range data {
		secret := &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: options.Namespace, Name: options.Name},
			Type:       corev1.SecretTypeOpaque, Data: content,
		}
		if err := references.MakeUnique(secret); err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// divide distributes documents among as many Secrets as necessary, and returns the data of each.
func divide(documents []Document, options Options) ([]map[string][]byte, error) {
	value, key := join(documents), PlainKey
	size := int64(len(value))
	if len(value) >= options.CompressFrom {
		var err error
		if value, err = compress(value); err != nil {
			return nil, err
		}
		key = CompressedKey
	}
	switch {
	case len(value) <= MaxData && size < options.MaxBytes && len(documents) < options.MaxDocuments:
		return []map[string][]byte{{key: value}}, nil
	case len(documents) == 1:
		return nil, fmt.Errorf("the object %s takes %d bytes, and a Secret can hold %d: it is too large for a ManagedResource",
			documents[0].Name, len(value), MaxData)
	}
	half := len(documents) / 2
	first, err := divide(documents[:half], options)
	if err != nil {
		return nil, err
	}
	second, err := divide(documents[half:], options)
	return append(first, second...), err
}

func join(documents []Document) []byte {
	var all bytes.Buffer
	for _, document := range documents {
		all.WriteString("---\n")
		all.Write(document.Text)
	}
	return all.Bytes()
}

// reusedBelow is the size in bytes of the texts whose writers are reused. Brotli chooses other tables for larger texts, and
// a writer keeps the tables of its first text: the result would depend on what was compressed before.
const reusedBelow = 1 << 20

// writers are the writers for texts that are smaller than reusedBelow. Each has tables of 32 MiB, and to allocate them
// takes longer than to compress the manifests of most bundles.
var writers sync.Pool

// compress returns the compressed text. Equal texts have equal results, because Secrets are named after their content.
func compress(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer := brotli.NewWriterLevel(&packed, compressionLevel) // it allocates its tables when it writes
	if len(text) < reusedBelow {
		if used, found := writers.Get().(*brotli.Writer); found {
			writer = used
			writer.Reset(&packed)
		}
		defer writers.Put(writer)
	}
	if _, err := writer.Write(text); err != nil {
		return nil, fmt.Errorf("compress the manifests: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compress the manifests: %w", err)
	}
	return packed.Bytes(), nil
}

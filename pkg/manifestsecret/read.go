package manifestsecret

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read returns the objects in a Secret that [Secrets] created. It does not read manifests from other sources, which may
// have any form and size. It returns an error if the decompressed data is larger than maxBytes.
func Read(secret *corev1.Secret, maxBytes int64) ([]*unstructured.Unstructured, error) {
	text, err := textOf(secret, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			// The error of the parser may quote the content.
			return nil, fmt.Errorf("read Secret %s/%s: document %d is not valid YAML", secret.Namespace, secret.Name, len(objects))
		}
		if object.Object != nil {
			objects = append(objects, object)
		}
	}
}

func textOf(secret *corev1.Secret, maxBytes int64) ([]byte, error) {
	if plain, found := secret.Data[PlainKey]; found {
		return plain, nil
	}
	packed, found := secret.Data[CompressedKey]
	if !found {
		return nil, fmt.Errorf("it has neither the key %s nor %s", PlainKey, CompressedKey)
	}
	text, err := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(packed)), maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", CompressedKey, err)
	}
	if int64(len(text)) > maxBytes {
		return nil, fmt.Errorf("%s has more than %d bytes after decompression", CompressedKey, maxBytes)
	}
	return text, nil
}

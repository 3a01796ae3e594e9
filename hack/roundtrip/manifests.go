package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/andybalholm/brotli"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxSecret is the maximum number of bytes in a Secret. The API server accepts 1 MiB.
const maxSecret = 1_000_000

// file is a file of a folder and the objects in it.
type file struct {
	name    string
	content []byte
	objects []*unstructured.Unstructured
}

// manifests is the content of a folder.
type manifests []file

func (m manifests) objects() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, file := range m {
		objects = append(objects, file.objects...)
	}
	return objects
}

// withoutLast returns the manifests without the last object on which no other object depends as its namespace or
// definition, and that object.
func (m manifests) withoutLast() (manifests, *unstructured.Unstructured, error) {
	rest := slices.Clone(m)
	for i, file := range slices.Backward(rest) {
		for j, object := range slices.Backward(file.objects) {
			if kind := object.GetKind(); kind == "Namespace" || kind == "CustomResourceDefinition" {
				continue
			}
			rest[i].objects = slices.Delete(slices.Clone(file.objects), j, j+1)
			var err error
			rest[i].content, err = encode(rest[i].objects)
			return rest, object, err
		}
	}
	return nil, nil, errors.New("the folder has no object that can be removed alone")
}

func encode(objects []*unstructured.Unstructured) ([]byte, error) {
	var content bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", object.GetName(), err)
		}
		content.WriteString("---\n")
		content.Write(document)
	}
	return content.Bytes(), nil
}

func readFolder(folder string) (manifests, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.y*ml"))
	if err != nil {
		return nil, fmt.Errorf("look for YAML files in %s: %w", folder, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no YAML files in %s", folder)
	}
	var set manifests
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		objects, err := readObjects(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(objects) > 0 {
			set = append(set, file{name: filepath.Base(path), content: content, objects: objects})
		}
	}
	return set, nil
}

func readObjects(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		switch {
		case len(object.Object) == 0:
		case object.IsList():
			list, err := object.ToList()
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				objects = append(objects, &list.Items[i])
			}
		default:
			objects = append(objects, object)
		}
	}
}

// secrets returns the data of the Secrets that the manifests need.
func (m manifests) secrets(compress bool) ([]map[string][]byte, error) {
	if compress {
		var all bytes.Buffer
		writer := brotli.NewWriterLevel(&all, brotli.BestCompression)
		for _, file := range m {
			if _, err := writer.Write(append([]byte("\n---\n"), file.content...)); err != nil {
				return nil, fmt.Errorf("compress: %w", err)
			}
		}
		if err := writer.Close(); err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
		return []map[string][]byte{{"data.yaml.br": all.Bytes()}}, nil
	}
	secrets := []map[string][]byte{{}}
	size := 0
	for _, file := range m {
		if size+len(file.content) > maxSecret && size > 0 {
			secrets, size = append(secrets, map[string][]byte{}), 0
		}
		secrets[len(secrets)-1][file.name] = file.content
		size += len(file.content)
	}
	return secrets, nil
}

package pack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/trellis-k8s/trellis/pkg/manifest"
)

const (
	// standardInput is the file name that means the standard input.
	standardInput = "-"
	// maxFileBytes is the maximum size of a file in bytes, and maxFiles the maximum number of files of a folder.
	maxFileBytes = 64 << 20
	maxFiles     = 10_000
)

// extensions are the extensions of manifest files in a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// ReadPaths returns the objects in files, in folders and their subfolders, and in standard input ("-"). It reads the
// files of a
// folder in the order of their paths. It does not skip invalid manifests: the error lists all files that cannot be
// read.
func ReadPaths(in io.Reader, paths []string) ([]manifest.Document, error) {
	var documents []manifest.Document
	var errs []error
	for _, path := range paths {
		files, err := filesIn(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := ReadFile(in, file, maxFileBytes)
			if err != nil {
				return nil, err
			}
			read, err := Parse(file, content)
			documents = append(documents, read...)
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return documents, errors.Join(errs...)
}

// Parse returns the objects in a YAML or JSON text. It parses the text in the same way as the resource-manager.
func Parse(name string, content []byte) ([]manifest.Document, error) {
	const namespace, secret = "local", "manifests"
	documents, err := manifest.Decode(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret}, Data: map[string][]byte{name: content},
	}, manifest.DefaultLimits())
	where := fmt.Sprintf(" in secret '%s/%s'", namespace, secret)
	for i := range documents {
		documents[i].Source = strings.ReplaceAll(documents[i].Source, where, "")
	}
	var errs []error
	if err != nil {
		errs = append(errs, errors.New(strings.ReplaceAll(err.Error(), where, "")))
	}
	for _, document := range documents {
		object := unstructured.Unstructured{Object: document.Object}
		if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
			errs = append(errs, notAnObject(name, document.Source, object.GetAPIVersion()))
		}
	}
	return documents, errors.Join(errs...)
}

// notAnObject describes a document that lacks the fields of a Kubernetes object.
func notAnObject(file, source, apiVersion string) error {
	if strings.HasPrefix(apiVersion, "kustomize.config.k8s.io/") || slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(file)) {
		return fmt.Errorf("the document %s is a kustomization: deliver its directory with -k instead of -f", source)
	}
	return fmt.Errorf("the document %s is not a Kubernetes object: it needs apiVersion, kind and metadata.name", source)
}

// ReadFile reads a file of at most the given number of bytes.
func ReadFile(in io.Reader, path string, most int64) ([]byte, error) {
	source := in
	if path != standardInput {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // the file is only read
		source = file
	}
	content, err := io.ReadAll(io.LimitReader(source, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("%s is larger than the limit of %d bytes", path, most)
	}
	return content, nil
}

// filesIn returns the file of a path, or the manifest files in a folder and its subfolders. It skips hidden files and
// folders.
func filesIn(path string) ([]string, error) {
	if path == standardInput {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file != path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.IsDir() && slices.Contains(extensions, strings.ToLower(filepath.Ext(file))):
			files = append(files, file)
		}
		if len(files) > maxFiles {
			return fmt.Errorf("more than %d files with manifests in %s", maxFiles, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no manifests found in %s: no file ends in %s", path, strings.Join(extensions, ", "))
	}
	slices.Sort(files)
	return files, nil
}

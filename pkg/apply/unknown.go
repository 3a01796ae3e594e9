package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// undeclared reports whether the API server found a field that is not in the schema of the kind. The field is either in
// the sent object, or in the live object after its conversion to the version that a field manager used.
func undeclared(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

// sendKnown applies an object without the fields that the API server does not know, and returns their paths.
// Server-side apply rejects such fields, while an update drops them. If the fields must not be dropped, or if dropping
// them does not help, the error names all of them.
func (e *Engine) sendKnown(ctx context.Context, task Task, cause error) ([]string, *metav1.PartialObjectMetadata, error) {
	// Server-side apply reports only one such field for each part of the object. Strict decoding reports all of them.
	strict := e.objects.TryCreate(ctx, task.Ref, task.initialBody(), metav1.FieldValidationStrict)
	if !apierrors.IsBadRequest(strict) {
		meta, err := e.sendInOneVersion(ctx, task, cause)
		return nil, meta, err
	}
	unknown := unknownFields(strict)
	if e.Strict || len(unknown) == 0 {
		return nil, nil, strict
	}
	known, dropped, err := withoutFields(task, unknown)
	if err != nil || len(dropped) == 0 {
		return nil, nil, strict
	}
	meta, err := e.send(ctx, known)
	return dropped, meta, err
}

// sendInOneVersion applies an object that has a field that does not exist in the version that a field manager used. It
// first migrates the managedFields to the version of the manifest.
func (e *Engine) sendInOneVersion(ctx context.Context, task Task, cause error) (*metav1.PartialObjectMetadata, error) {
	if task.Live == nil {
		return nil, cause
	}
	resource, err := e.objects.Resource(task.Ref)
	if err != nil {
		return nil, err
	}
	found, err := resource.Get(ctx, task.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	migrate := func(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
		return fieldowner.MigrateVersions(entries, task.GroupVersion().String())
	}
	migrated, err := rewrite(ctx, resource, found, migrate)
	if err != nil || migrated == found {
		return nil, errors.Join(cause, err)
	}
	return e.send(ctx, task)
}

// unknownField matches the message of the strict decoder of k8s.io/apimachinery about a field.
var unknownField = regexp.MustCompile(`unknown field ("(?:[^"\\]|\\.)*")`)

// unknownFields returns the paths of the fields in an error of the strict decoder, such as spec.ports[0].nme.
func unknownFields(err error) []string {
	var paths []string
	for _, match := range unknownField.FindAllStringSubmatch(err.Error(), -1) {
		if path, err := strconv.Unquote(match[1]); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// withoutFields returns the task without the fields of the paths, and the paths of the fields that were dropped.
func withoutFields(task Task, paths []string) (known Task, dropped []string, err error) {
	if task.Body, dropped, err = dropFields(task.Body, paths); err != nil || task.Initial == nil {
		return task, dropped, err
	}
	if task.Changed != nil {
		if task.Changed, _, err = dropFields(task.Changed, paths); err != nil {
			return task, dropped, err
		}
	}
	task.Initial, dropped, err = dropFields(task.Initial, paths) // it contains all fields of the body
	return task, dropped, err
}

// dropFields returns a body without the fields of the paths, and the paths of the fields that were dropped.
func dropFields(body []byte, paths []string) (rest []byte, dropped []string, err error) {
	var obj map[string]any
	if err := json.Unmarshal(body, &obj); err != nil {
		return nil, nil, fmt.Errorf("decode the manifest: %w", err)
	}
	for _, path := range paths {
		if dropField(obj, path) {
			dropped = append(dropped, path)
		}
	}
	rest, err = object.EncodeBody(obj)
	return rest, dropped, err
}

// dropField removes the field of a path, and reports whether it existed. Keys of maps may contain dots, so all
// interpretations of the path are tried.
func dropField(value any, path string) bool {
	switch value := value.(type) {
	case map[string]any:
		if _, found := value[path]; found {
			delete(value, path)
			return true
		}
		for key, child := range value {
			rest, fits := strings.CutPrefix(path, key)
			if !fits {
				continue
			}
			if inner, isField := strings.CutPrefix(rest, "."); isField && dropField(child, inner) {
				return true
			}
			if strings.HasPrefix(rest, "[") && dropField(child, rest) {
				return true
			}
		}
	case []any:
		number, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		index, err := strconv.Atoi(number)
		if !ok || err != nil || index < 0 || index >= len(value) {
			return false
		}
		return dropField(value[index], strings.TrimPrefix(rest, "."))
	}
	return false
}

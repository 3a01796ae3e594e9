package manifest

import (
	"errors"
	"fmt"
	"slices"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// statusOf returns the body that is applied through the status subresource of an object. It is nil if the status is not
// applied.
func (m RenderOptions) statusOf(ref object.Ref, status any) ([]byte, error) {
	selects := func(s resourcesv1alpha1.ObjectSelector) bool { return s.Selects(ref.GroupKind(), ref.Name) }
	if status == nil || !slices.ContainsFunc(m.StatusOnCreation, selects) {
		return nil, nil
	}
	fields, isMap := status.(map[string]any)
	switch {
	case !isMap:
		return nil, errors.New("its status is not a map")
	case len(fields) == 0:
		return nil, nil
	}
	meta := map[string]any{"name": ref.Name}
	if ref.Namespace != "" {
		meta["namespace"] = ref.Namespace
	}
	body, err := object.EncodeBody(map[string]any{
		"apiVersion": ref.GroupVersion().String(), "kind": ref.Kind, "metadata": meta, "status": fields,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the status of %s: %w", ref, err)
	}
	return body, nil
}

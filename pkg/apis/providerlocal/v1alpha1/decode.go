package v1alpha1

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// maxConfigBytes is the maximum size of a provider configuration.
const maxConfigBytes = 256 << 10

// Decode decodes an object of this package strictly: unknown fields, duplicate fields and another kind are errors. It
// returns nil if the text is empty.
func Decode[T any, P interface {
	*T
	runtime.Object
}](raw *runtime.RawExtension) (P, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	if len(raw.Raw) > maxConfigBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are decoded", len(raw.Raw), maxConfigBytes)
	}
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoded, kind, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(raw.Raw, nil, nil)
	if err != nil {
		return nil, err
	}
	object, ok := decoded.(P)
	if !ok {
		return nil, fmt.Errorf("it is of the kind %s, which does not belong here", kind.Kind)
	}
	return object, nil
}

// Encode encodes an object of this package for a field of another object. Its API version and kind must be set: see
// [TypeMeta].
func Encode(object runtime.Object) (*runtime.RawExtension, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	return &runtime.RawExtension{Raw: text}, nil
}

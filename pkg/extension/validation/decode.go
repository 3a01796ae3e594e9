// Package validation contains functions for admission components of extensions that follow Gardener's guidelines for
// validation, see docs/writing-extensions.md. Each guideline has a function here, with one exception: the controller, not
// admission, validates against the infrastructure, with a [github.com/trellis-k8s/trellis/pkg/extension.ConfigValidator].
package validation

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxConfig limits the size of users' configurations, in bytes.
const maxConfig = 1 << 20

// Decoder decodes users' configurations from any version of a scheme into one version. Guidelines: decode to the internal
// types in admission and in the controller, so that both support all versions, and decode strictly.
type Decoder struct {
	decoder runtime.Decoder
}

// NewDecoder returns a decoder into a version of a scheme: the version of the internal types, or the only version.
func NewDecoder(scheme *runtime.Scheme, into schema.GroupVersion) *Decoder {
	return &Decoder{decoder: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(into)}
}

// Decode decodes a configuration. Unknown and duplicate fields are errors. A missing configuration is also an error, so
// call it only if one is required.
func (d *Decoder) Decode(raw *runtime.RawExtension, into runtime.Object, path *field.Path) field.ErrorList {
	switch {
	case raw == nil || len(bytes.TrimSpace(raw.Raw)) == 0:
		return field.ErrorList{field.Required(path, "the configuration is missing")}
	case len(raw.Raw) > maxConfig:
		return field.ErrorList{field.TooLong(path, "", maxConfig)}
	}
	if err := runtime.DecodeInto(d.decoder, raw.Raw, into); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("cannot be decoded: %v", err))}
	}
	return nil
}

// Package validation has what an admission component of an extension needs to follow Gardener's guidelines for validation: see
// docs/writing-extensions.md. Each guideline has a function here, except for one: what has to be asked of the infrastructure is checked by the
// controller and not by admission, as an [github.com/trellis-k8s/trellis/pkg/extension.ConfigValidator].
package validation

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxConfig is the most that a configuration of users may have, in bytes.
const maxConfig = 1 << 20

// Decoder decodes configurations of users, in any version that a scheme has, into one version. Guidelines: decode in admission and in the
// controller, to the internal types, so that both work whatever version users have written; and decode strictly.
type Decoder struct {
	decoder runtime.Decoder
}

// NewDecoder returns a decoder into a version of a scheme: that of the internal types, or the only version.
func NewDecoder(scheme *runtime.Scheme, into schema.GroupVersion) *Decoder {
	return &Decoder{decoder: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(into)}
}

// Decode decodes a configuration. Unknown and duplicate fields are errors. A configuration that is missing is an error, too: whether one is
// needed is decided before.
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

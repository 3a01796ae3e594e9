package admission

import (
	"io"

	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"
)

// The operations of rules.
var (
	OnCreate         = []Operation{admission.Create}
	OnUpdate         = []Operation{admission.Update}
	OnDelete         = []Operation{admission.Delete}
	OnCreateOrUpdate = []Operation{admission.Create, admission.Update}
)

// Decode reads the configuration of a plugin in YAML. Unknown fields are errors; no configuration changes nothing.
func Decode(configuration io.Reader, into any) error {
	if configuration == nil {
		return nil
	}
	content, err := io.ReadAll(configuration)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(content, into)
}

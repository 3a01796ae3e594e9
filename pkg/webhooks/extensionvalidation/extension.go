package extensionvalidation

import "k8s.io/apimachinery/pkg/util/validation/field"

type extensionSpec struct {
	Type string `json:"type"`
}

func checkExtension(extension *object[extensionSpec]) field.ErrorList {
	return required(text{specPath.Child("type"), extension.Spec.Type})
}

func compareExtensions(spec, old *extensionSpec) field.ErrorList {
	return immutable(change{specPath.Child("type"), spec.Type, old.Type})
}

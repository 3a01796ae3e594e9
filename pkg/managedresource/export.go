package managedresource

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// Document is an object as it is written in a Secret.
type Document struct {
	Object map[string]any
	// Source says where it was read, such as: at index 2 in 'objects.yaml' in secret 'shop/manifests'.
	Source string
}

// Decode returns the objects in a Secret, in the order in which the controller reads them. The error tells of all that could not
// be read; the other objects are returned all the same.
func Decode(secret *corev1.Secret, limits Limits) ([]Document, error) {
	read, problems := decodeSecret(secret, limits)
	documents := make([]Document, 0, len(read))
	for _, document := range read {
		documents = append(documents, Document{Object: document.object, Source: document.source})
	}
	errs := make([]error, 0, len(problems))
	for _, problem := range problems {
		errs = append(errs, problem.err)
	}
	return documents, errors.Join(errs...)
}

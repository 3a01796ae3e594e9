package extension

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// codedError is an error with codes.
type codedError struct {
	error
	codes []corev1beta1.ErrorCode
}

// Unwrap returns the error without its codes.
func (e *codedError) Unwrap() error { return e.error }

// WithCodes adds codes to an error. They are stored in lastError.codes and copied to the Shoot. It returns nil for nil.
func WithCodes(err error, codes ...corev1beta1.ErrorCode) error {
	if err == nil {
		return nil
	}
	return &codedError{error: err, codes: codes}
}

// ConfigurationProblem adds the code ERR_CONFIGURATION_PROBLEM, which means that users must change their configuration.
// It returns nil for nil.
func ConfigurationProblem(err error) error {
	return WithCodes(err, corev1beta1.ErrorConfigurationProblem)
}

// Codes returns the codes of an error: those of [WithCodes] for it or for an error that it wraps, which can be an empty list.
// Without WithCodes, they are derived from its text, like in Gardener's extensions. Of an error of a Kubernetes API server,
// only the text about invalid objects counts: Unauthorized and Forbidden concern the account of the extension, not the
// credentials of the infrastructure.
func Codes(err error) []corev1beta1.ErrorCode {
	if err == nil {
		return nil
	}
	codes, known := addedCodes(err)
	if !known {
		codes = codesByText(err)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// addedCodes returns the codes of an error and of all errors that it wraps. It reports whether [WithCodes] was called for one.
func addedCodes(err error) (codes []corev1beta1.ErrorCode, known bool) {
	if coded, is := err.(*codedError); is { //nolint:errorlint // each error of the tree is visited
		codes, known = append(codes, coded.codes...), true
	}
	for _, one := range wrapped(err) {
		more, coded := addedCodes(one)
		codes, known = append(codes, more...), known || coded
	}
	return codes, known
}

// codesByText returns the codes of an error by its text. The parts of a joined error are separate if an API server returned one of them.
func codesByText(err error) []corev1beta1.ErrorCode {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return flow.CodesIn(err.Error())
	}
	parts := wrapped(err)
	for len(parts) == 1 {
		parts = wrapped(parts[0])
	}
	if len(parts) == 0 {
		return flow.CodesOfWrite(err.Error())
	}
	var codes []corev1beta1.ErrorCode
	for _, part := range parts {
		codes = append(codes, codesByText(part)...)
	}
	return codes
}

// wrapped returns the errors that an error wraps.
func wrapped(err error) []error {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return joined.Unwrap()
	}
	if one := errors.Unwrap(err); one != nil {
		return []error{one}
	}
	return nil
}

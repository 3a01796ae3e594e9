package extension

import (
	"errors"
	"slices"

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

// Codes returns the codes of an error: those that [WithCodes] added to it or to an error that it wraps. If there are
// none, they are derived from its text, like in Gardener's extensions.
func Codes(err error) []corev1beta1.ErrorCode {
	if err == nil {
		return nil
	}
	codes := addedCodes(err)
	if len(codes) == 0 {
		return flow.CodesIn(err.Error())
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// addedCodes returns the codes of an error and of all errors that it wraps.
func addedCodes(err error) []corev1beta1.ErrorCode {
	var codes []corev1beta1.ErrorCode
	if coded, is := err.(*codedError); is { //nolint:errorlint // each error of the tree is visited
		codes = append(codes, coded.codes...)
	}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		for _, one := range joined.Unwrap() {
			codes = append(codes, addedCodes(one)...)
		}
		return codes
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		codes = append(codes, addedCodes(wrapped)...)
	}
	return codes
}

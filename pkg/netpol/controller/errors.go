package controller

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errAltered says that somebody changes policies as they are written.
var errAltered = errors.New("something, such as a mutating webhook, changes the policy whenever it is written: have it leave alone " +
	"objects with the label networking.resources.gardener.cloud/service-name")

// isRefused tells whether trying again is of no use until something has changed.
func isRefused(err error) bool {
	return errors.Is(err, errAltered) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

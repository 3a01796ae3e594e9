package controller

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errAltered reports that policies are changed as they are written.
var errAltered = errors.New("something, such as a mutating webhook, changes the policy after every write: exclude from it " +
	"objects with the label networking.resources.gardener.cloud/service-name")

// isRefused reports whether retries are useless until something changes.
func isRefused(err error) bool {
	return errors.Is(err, errAltered) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

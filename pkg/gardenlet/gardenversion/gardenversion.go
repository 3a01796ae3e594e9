// Package gardenversion checks that the version of a gardenlet is compatible with the garden's API server.
package gardenversion

import (
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// keyAPIServer is the key of the ConfigMap with information about the API server, in YAML.
	keyAPIServer = "gardenerAPIServer"
	// maxSkew is the number of minor versions by which a gardenlet may be older than the API server.
	maxSkew = 2
)

// ErrSkew reports that the versions are not compatible.
var ErrSkew = errors.New("the versions of gardenlet and garden are not compatible")

// Check compares the version of this gardenlet with that of the garden's API server, which publishes it in a ConfigMap.
// It skips the check for a garden without the ConfigMap, and for a development build.
func Check(ctx context.Context, garden client.Reader, own string) error {
	info := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: constants.SystemPublicNamespace, Name: constants.GardenerInfoName}
	if err := garden.Get(ctx, key, info); err != nil {
		if apierrors.IsNotFound(err) {
			log.FromContext(ctx).Info("The version of the garden is not known: it has no ConfigMap with it", "configMap", key.String())
			return nil
		}
		return fmt.Errorf("read the version of the garden from ConfigMap %s: %w", key, err)
	}
	var server struct {
		Version string `json:"version"`
	}
	if err := yaml.Unmarshal([]byte(info.Data[keyAPIServer]), &server); err != nil {
		return fmt.Errorf("the key %s of ConfigMap %s of the garden: %w", keyAPIServer, key, err)
	}
	return compare(own, server.Version)
}

// compare returns ErrSkew if the version of gardenlet is not compatible with that of the garden.
func compare(own, garden string) error {
	ours, err := semver.NewVersion(own)
	if err != nil {
		return nil //nolint:nilerr // a development build has no version
	}
	theirs, err := semver.NewVersion(garden)
	if err != nil {
		return fmt.Errorf("the version %q of the garden: %w", garden, err)
	}
	switch {
	case ours.Major() != theirs.Major() || ours.Minor() > theirs.Minor() || ours.Minor() == theirs.Minor() && ours.Patch() > theirs.Patch():
		return fmt.Errorf("%w: gardenlet %s is newer than the garden, %s: update the garden first", ErrSkew, own, garden)
	case ours.Minor()+maxSkew < theirs.Minor():
		return fmt.Errorf("%w: gardenlet %s is more than %d minor versions older than the garden, %s: update the gardenlet",
			ErrSkew, own, maxSkew, garden)
	}
	return nil
}

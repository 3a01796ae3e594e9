// Package state maintains ShootStates. Data that cannot be generated again, such as certificate authorities and the
// encryption key of etcd, is stored in the garden before the control plane uses it.
package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// typeSecret is the type of the data of Secrets in a ShootState.
const typeSecret = "secret"

// maxState limits the content of a ShootState, in bytes. etcd accepts requests of 1.5 MiB.
const maxState = 1_500_000

// fits returns an error if etcd would refuse a ShootState because of its size. It says what needs the space.
func fits(spec corev1beta1.ShootStateSpec) error {
	size := func(value any) int {
		text, err := json.Marshal(value)
		if err != nil {
			return maxState + 1 // which cannot be stored either
		}
		return len(text)
	}
	if size(spec) <= maxState {
		return nil
	}
	machines := 0
	if entry := MachinesOf(spec); entry != nil {
		machines = size(entry)
	}
	return fmt.Errorf("it would have %d bytes, but at most %d can be stored: %d of Secrets, %d of machines, %d of extensions and what they refer to",
		size(spec), maxState, size(spec.Gardener)-machines, machines, size(spec.Extensions)+size(spec.Resources))
}

// Next returns the wanted content of a ShootState: the existing Secrets with the persist label, and all of its current
// entries that are not Secrets. Secrets that no longer exist are removed. Call [Lost] to verify that no Secret in use is
// removed.
//
// It returns an error if the data of a Secret with this manager identity differ from the stored data. Such Secrets are
// immutable, so it was replaced by hand, and the stored data are in use. Other Secrets may change.
func Next(present corev1beta1.ShootStateSpec, existing []corev1.Secret, identity string) (corev1beta1.ShootStateSpec, error) {
	saved, err := secrets.Save(existing)
	if err != nil {
		return corev1beta1.ShootStateSpec{}, err
	}
	stored := map[string]corev1beta1.GardenerResourceData{}
	next := corev1beta1.ShootStateSpec{Extensions: present.Extensions, Resources: present.Resources}
	for _, entry := range present.Gardener {
		if entry.Type == typeSecret {
			stored[entry.Name] = entry
		} else {
			next.Gardener = append(next.Gardener, entry)
		}
	}
	for _, entry := range saved {
		before, known := stored[entry.Name]
		if known && entry.Labels[constants.LabelSecretsManagerIdentity] == identity && !sameJSON(before.Data.Raw, entry.Data.Raw) {
			return corev1beta1.ShootStateSpec{}, fmt.Errorf(
				"secret %s was replaced: its data differ from those in the ShootState; delete it, and it is restored from the ShootState", entry.Name)
		}
	}
	next.Gardener = slices.Concat(saved, next.Gardener)
	return next, nil
}

// Equal reports whether two ShootStates have the same content. The API server may have changed the encoding.
func Equal(a, b corev1beta1.ShootStateSpec) bool {
	return slices.EqualFunc(a.Gardener, b.Gardener, func(x, y corev1beta1.GardenerResourceData) bool {
		return x.Name == y.Name && x.Type == y.Type && maps.Equal(x.Labels, y.Labels) && sameJSON(x.Data.Raw, y.Data.Raw)
	}) && slices.EqualFunc(a.Extensions, b.Extensions, sameEncoded) && slices.EqualFunc(a.Resources, b.Resources, sameEncoded)
}

// sameEncoded reports whether two values have equivalent JSON encodings.
func sameEncoded[T any](a, b T) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && sameJSON(x, y)
}

// sameJSON reports whether two JSON texts are equivalent.
func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return string(a) == string(b)
	}
	return reflect.DeepEqual(x, y)
}

// Lost returns the names of the Secrets in use that a ShootState with this content does not store with the same data.
func Lost(inUse map[string]secrets.Item, content corev1beta1.ShootStateSpec) ([]string, error) {
	saved, err := secrets.Saved(content.Gardener)
	if err != nil {
		return nil, err
	}
	return secrets.Unsaved(secrets.Result{Items: inUse}, saved), nil
}

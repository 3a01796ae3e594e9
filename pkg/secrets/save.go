package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// typeSecret is the type of ShootState entries that contain a Secret.
	typeSecret = "secret"
	// maxSaved limits the size of a saved Secret in bytes. A Secret contains up to 1 MiB, which is larger in base64.
	maxSaved = 2 << 20
)

// saved is the format of a Secret in a ShootState.
type saved struct {
	Data      map[string][]byte `json:"data"`
	Immutable *bool             `json:"immutable,omitempty"`
	Type      corev1.SecretType `json:"type,omitempty"`
}

// Save returns the ShootState entries of Secrets with the label persist, of any identity, sorted by name.
func Save(objects []corev1.Secret) ([]corev1beta1.GardenerResourceData, error) {
	var result []corev1beta1.GardenerResourceData
	for i := range objects {
		object := &objects[i]
		if object.Labels[constants.LabelSecretsManagerPersist] != "true" {
			continue
		}
		text, err := json.Marshal(saved{Data: object.Data, Immutable: object.Immutable, Type: object.Type})
		if err != nil {
			return nil, fmt.Errorf("save Secret %s/%s: %w", object.Namespace, object.Name, err)
		}
		result = append(result, corev1beta1.GardenerResourceData{
			Name: object.Name, Type: typeSecret, Labels: object.Labels, Data: runtime.RawExtension{Raw: text},
		})
	}
	slices.SortFunc(result, func(a, b corev1beta1.GardenerResourceData) int { return strings.Compare(a.Name, b.Name) })
	return result, nil
}

// Objects returns the Secrets in a ShootState as objects of a namespace.
func Objects(data []corev1beta1.GardenerResourceData, namespace string) ([]corev1.Secret, error) {
	var objects []corev1.Secret
	for _, entry := range data {
		if entry.Type != typeSecret {
			continue
		}
		if len(entry.Data.Raw) > maxSaved {
			return nil, fmt.Errorf("saved secret %s has %d bytes, more than the %d allowed", entry.Name, len(entry.Data.Raw), maxSaved)
		}
		var content saved
		if err := json.Unmarshal(entry.Data.Raw, &content); err != nil {
			return nil, fmt.Errorf("saved secret %s is not a Secret in JSON", entry.Name) // the wrapped error might contain the data
		}
		objects = append(objects, corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: entry.Name, Labels: entry.Labels},
			Type:       content.Type, Immutable: content.Immutable, Data: content.Data,
		})
	}
	return objects, nil
}

// Saved returns the Secrets in a ShootState, for [Wanted].
func Saved(data []corev1beta1.GardenerResourceData) ([]Secret, error) {
	objects, err := Objects(data, "")
	if err != nil {
		return nil, err
	}
	var result []Secret
	for i := range objects {
		result = append(result, fromObject(&objects[i]))
	}
	return result, nil
}

// Unsaved returns the names of the Secrets to persist that a ShootState does not contain. They must not be used until
// they are saved: if they were lost, data encrypted with them would be unreadable, and clients that trust them would
// fail.
func Unsaved(result Result, saved []Secret) []string {
	known := map[string]string{}
	for _, secret := range saved {
		known[secret.Name] = secret.Data.checksum()
	}
	var names []string
	for _, item := range result.Items {
		for _, secret := range []*Secret{&item.Current, item.Old} {
			if item.Config.Persist && secret != nil && known[secret.Name] != secret.Data.checksum() {
				names = append(names, secret.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Restore creates the Secrets of a ShootState in the namespace of a control plane that was migrated here, for all
// identities. It can be repeated. The error lists the Secrets that exist with different data.
func Restore(ctx context.Context, c client.Client, namespace string, data []corev1beta1.GardenerResourceData) error {
	objects, err := Objects(data, namespace)
	if err != nil {
		return err
	}
	var errs []error
	for i := range objects {
		object := &objects[i]
		err := c.Create(ctx, object)
		if apierrors.IsAlreadyExists(err) {
			err = compare(ctx, c, object)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("restore Secret %s/%s: %w", namespace, object.Name, err))
		}
	}
	return errors.Join(errs...)
}

func compare(ctx context.Context, reader client.Reader, wanted *corev1.Secret) error {
	var object corev1.Secret
	if err := reader.Get(ctx, client.ObjectKeyFromObject(wanted), &object); err != nil {
		return err
	}
	if Material(object.Data).checksum() != Material(wanted.Data).checksum() {
		return errors.New("it exists with different data; delete it to restore the saved one")
	}
	return nil
}

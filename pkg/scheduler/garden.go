package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	// fieldManager owns the fields that the scheduler writes.
	fieldManager = "gardener-scheduler"
	// sendTimeout is how long a request may take. It is less than the time between the end of the right to write and the end of the lease, so that no
	// request of an earlier leader is on its way when the next one counts.
	sendTimeout = 4 * time.Second
	// pageSize is the number of Shoots per request of the uncached count.
	pageSize = 500
)

// garden is what the scheduler needs of the API server.
type garden interface {
	// Bind assigns a Shoot to a Seed, and returns the Shoot with its Seed. It fails if the Shoot has changed since it was read.
	Bind(ctx context.Context, shoot *corev1beta1.Shoot, seed string) (*corev1beta1.Shoot, error)
	// Report writes the last operation of a Shoot. It fails if the Shoot has changed since it was read.
	Report(ctx context.Context, shoot *corev1beta1.Shoot, operation corev1beta1.LastOperation) error
	// Read returns a Shoot, uncached.
	Read(ctx context.Context, key client.ObjectKey) (*corev1beta1.Shoot, error)
	// Count returns where all Shoots are, uncached, and the resourceVersion of the list.
	Count(ctx context.Context) (version string, places []place, uids []types.UID, err error)
}

// unknown reports whether a request may have had an effect although it failed.
func unknown(err error) bool {
	return err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) &&
		!apierrors.IsBadRequest(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err)
}

// server implements garden.
type server struct {
	client   client.Client
	uncached client.Reader
}

// precondition is the metadata of a patch that fails if the object has changed.
func precondition(shoot *corev1beta1.Shoot) map[string]any {
	return map[string]any{"uid": shoot.UID, "resourceVersion": shoot.ResourceVersion}
}

// Bind implements garden.
func (s server) Bind(ctx context.Context, shoot *corev1beta1.Shoot, seed string) (*corev1beta1.Shoot, error) {
	bound := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	patch, err := json.Marshal(map[string]any{"metadata": precondition(shoot), "spec": map[string]any{"seedName": seed}})
	if err != nil {
		return nil, fmt.Errorf("encode the binding: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := s.client.SubResource("binding").Patch(ctx, bound, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager)); err != nil {
		return nil, err
	}
	return bound, nil
}

// Report implements garden.
func (s server) Report(ctx context.Context, shoot *corev1beta1.Shoot, operation corev1beta1.LastOperation) error {
	target := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	patch, err := json.Marshal(map[string]any{"metadata": precondition(shoot), "status": map[string]any{"lastOperation": operation}})
	if err != nil {
		return fmt.Errorf("encode the last operation: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return s.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
}

// Read implements garden.
func (s server) Read(ctx context.Context, key client.ObjectKey) (*corev1beta1.Shoot, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	shoot := &corev1beta1.Shoot{}
	return shoot, s.uncached.Get(ctx, key, shoot)
}

// Count implements garden.
func (s server) Count(ctx context.Context) (version string, places []place, uids []types.UID, err error) {
	var list corev1beta1.ShootList
	for {
		if err := s.uncached.List(ctx, &list, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
			return "", nil, nil, fmt.Errorf("count the Shoots of each Seed: %w", err)
		}
		for i := range list.Items {
			places = append(places, place{version: list.Items[i].ResourceVersion, seeds: seedsOf(&list.Items[i])})
			uids = append(uids, list.Items[i].UID)
		}
		if list.Continue == "" {
			return list.ResourceVersion, places, uids, nil
		}
	}
}

package breakglass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
)

const (
	// maxBytes limits the size of each manifest Secret of the resource-manager after decompression.
	maxBytes = 16 << 20
	// maxNote is the maximum length of the note of an Event in Kubernetes.
	maxNote = 1024
)

// waves is the order in which objects are applied, by kind. Other kinds belong to wave 1.
var waves = map[string]int{
	"CustomResourceDefinition": 0, "Namespace": 0, "PriorityClass": 0,
	"DaemonSet": 2, "Deployment": 2, "StatefulSet": 2,
	// Webhooks might need the Pods to answer.
	"MutatingWebhookConfiguration": 3, "ValidatingWebhookConfiguration": 3,
}

func waveOf(object client.Object) int {
	if wave, known := waves[object.GetObjectKind().GroupVersionKind().Kind]; known {
		return wave
	}
	return 1
}

// apply applies all objects of a ManagedResource and returns their number. The error joins the errors of all objects. A
// failure does not stop the others.
func (c *Controller) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (int, error) {
	objects, err := c.read(ctx, mr)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, object := range objects {
		err := c.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner(c.options.FieldManager), client.ForceOwnership)
		if err != nil {
			errs = append(errs, fmt.Errorf("apply %s: %w", nameOf(object), withoutContent(object, err)))
		}
	}
	return len(objects), errors.Join(errs...)
}

// read returns the objects in the Secrets of a ManagedResource, in apply order.
func (c *Controller) read(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, reference := range mr.Spec.SecretRefs {
		var secret corev1.Secret
		if err := c.uncached.Get(ctx, client.ObjectKey{Namespace: mr.Namespace, Name: reference.Name}, &secret); err != nil {
			return nil, fmt.Errorf("read Secret %s/%s: %w", mr.Namespace, reference.Name, err)
		}
		found, err := manifestsecret.Read(&secret, maxBytes)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(waveOf(a), waveOf(b)) })
	return objects, nil
}

func nameOf(object client.Object) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + name
}

// withoutContent replaces errors about Secrets, because API servers might quote their content.
func withoutContent(object client.Object, err error) error {
	if object.GetObjectKind().GroupVersionKind().Kind != "Secret" {
		return err
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return errors.New(string(reason))
	}
	return errors.New("the request failed")
}

// shortened truncates a text to the maximum length of an Event note.
func shortened(text string) string {
	if len(text) <= maxNote {
		return text
	}
	rest := "… (" + strconv.Itoa(len(text)) + " bytes)"
	return strings.ToValidUTF8(text[:maxNote-len(rest)], "") + rest
}

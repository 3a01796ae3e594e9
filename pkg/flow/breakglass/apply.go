package breakglass

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// apply applies all objects of a ManagedResource that differ and returns what it did with each. The error joins the
// errors of all objects: a failure does not stop the others. Objects of kinds that the cluster does not have yet are left to the
// resource-manager, which applies their definitions, too. Immutable fields are errors, too: the library that applies
// can replace such an object, but it also takes other invalid objects for it, and would delete a Deployment that it then
// cannot create.
func (c *Controller) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*ssa.ChangeSet, error) {
	changes := ssa.NewChangeSet()
	objects, err := c.read(ctx, mr)
	if err != nil {
		return changes, err
	}
	manager := ssa.NewResourceManager(uncached{c.writer, c.uncached}, nil, ssa.Owner{Field: c.options.FieldManager})
	var errs []error
	for _, object := range objects {
		change, err := manager.Apply(ctx, object, ssa.ApplyOptions{})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("apply %s: %w", nameOf(object), withoutContent(object, err)))
			continue
		}
		changes.Add(*change)
	}
	return changes, errors.Join(errs...)
}

// uncached writes with a client and reads with another one that has no cache: a cached read would start a watch.
type uncached struct {
	client.Client
	reader client.Reader
}

// Get implements [client.Client].
func (u uncached) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return u.reader.Get(ctx, key, object, options...)
}

// List implements [client.Client].
func (u uncached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return u.reader.List(ctx, list, options...)
}

// summary counts what was done, for example "2 created, 1 configured, 9 unchanged".
func summary(changes *ssa.ChangeSet) string {
	grouped := changes.ToGroupedMap()
	var parts []string
	for _, action := range []ssa.Action{ssa.CreatedAction, ssa.ConfiguredAction, ssa.UnchangedAction} {
		if count := len(grouped[action]); count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, action))
		}
	}
	return strings.Join(parts, ", ")
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
	sort.Sort(ssa.SortableUnstructureds(objects))
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

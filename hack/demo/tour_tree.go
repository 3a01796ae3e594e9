package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// maxDepth limits the depth of the tree, regardless of the owner references.
const maxDepth = 8

// ownedKinds are the kinds that Kubernetes controllers create for the objects of a ManagedResource.
var ownedKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
	{Version: "v1", Kind: "Pod"},
}

// owners maps the UID of an object to the objects that it owns.
type owners map[types.UID][]unstructured.Unstructured

// readOwners reads the objects of the owned kinds.
func readOwners(ctx context.Context, c client.Client) (owners, error) {
	result := owners{}
	for _, kind := range ownedKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the objects of kind %s: %w", kind.Kind, err)
		}
		result.add(list.Items)
	}
	return result, nil
}

func (o owners) add(objects []unstructured.Unstructured) {
	for _, object := range objects {
		for _, owner := range object.GetOwnerReferences() {
			o[owner.UID] = append(o[owner.UID], object)
		}
	}
}

// below returns the tree of the objects that an object owns, by kind and name.
func (o owners) below(owner types.UID, depth int) []node {
	owned := slices.SortedFunc(slices.Values(o[owner]), func(a, b unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
	if depth == 0 {
		return nil
	}
	nodes := make([]node, 0, len(owned))
	for _, object := range owned {
		nodes = append(nodes, node{
			name:     object.GetKind() + " " + object.GetName(),
			state:    stateOf(object.Object),
			children: o.below(object.GetUID(), depth-1),
		})
	}
	return nodes
}

// readTree returns the tree of a ManagedResource: the objects of its inventory and the objects that these own.
func readTree(ctx context.Context, c client.Client, mr *resourcesv1alpha1.ManagedResource, owners owners) (node, error) {
	root := node{
		name:  "ManagedResource " + client.ObjectKeyFromObject(mr).String(),
		state: "applied: " + string(appliedCondition(mr).Status),
	}
	for _, reference := range mr.Status.Resources {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(reference.APIVersion)
		object.SetKind(reference.Kind)
		key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}
		child := node{name: reference.Kind + " " + strings.TrimPrefix(key.String(), "/")}
		switch err := c.Get(ctx, key, object); {
		case err == nil:
			child.state, child.children = stateOf(object.Object), owners.below(object.GetUID(), maxDepth)
		case apierrors.IsNotFound(err):
			child.state = "missing"
		default:
			return root, fmt.Errorf("reading %s: %w", child.name, err)
		}
		root.children = append(root.children, child)
	}
	return root, nil
}

// managedResourceRows are the rows of a table of ManagedResources.
func managedResourceRows(items []resourcesv1alpha1.ManagedResource, now time.Time) [][]string {
	rows := make([][]string, 0, len(items))
	for i := range items {
		mr := &items[i]
		class := "(default)"
		if mr.Spec.Class != nil && *mr.Spec.Class != "" {
			class = *mr.Spec.Class
		}
		condition := appliedCondition(mr)
		rows = append(rows, []string{
			client.ObjectKeyFromObject(mr).String(), class, string(condition.Status), strconv.Itoa(len(mr.Status.Resources)),
			duration.HumanDuration(now.Sub(mr.CreationTimestamp.Time)), shorten(condition.Message, 50),
		})
	}
	return rows
}

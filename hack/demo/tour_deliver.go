package main

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/manifest"
)

// delivery is a folder of manifests that is delivered as one ManagedResource.
type delivery struct {
	name     string
	folder   string
	compress bool
}

// parcel has the objects of a delivery. They are created by the same code as in `kubectl mr create`.
type parcel struct {
	delivery
	*pack.Parcel
}

// pack puts the manifests of a folder into Secrets and creates the ManagedResource for them.
func (d delivery) pack(files fs.FS) (*parcel, error) {
	paths, err := fs.Glob(files, path.Join(d.folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for manifests in %s: %w", d.folder, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there are no manifests in %s", d.folder)
	}
	var documents []manifest.Document
	for _, name := range paths {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest %s: %w", name, err)
		}
		read, err := pack.Parse(name, content)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest %s: %w", name, err)
		}
		documents = append(documents, read...)
	}
	packed, err := pack.Pack(documents, pack.Options{Namespace: tourNamespace, Name: d.name, Plain: !d.compress})
	if err != nil {
		return nil, err
	}
	return &parcel{d, packed}, nil
}

// write creates the Secrets unless they exist, and makes the ManagedResource reference them. It reports whether the
// ManagedResource changed.
func (p *parcel) write(ctx context.Context, c client.Client) (bool, error) {
	for _, secret := range p.Secrets {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, secret)); err != nil {
			return false, fmt.Errorf("creating Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}
	}
	wanted := p.ManagedResource.DeepCopy()
	result, err := controllerutil.CreateOrPatch(ctx, c, p.ManagedResource, func() error {
		p.ManagedResource.Annotations, p.ManagedResource.Spec = wanted.Annotations, wanted.Spec
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("writing ManagedResource %s: %w", client.ObjectKeyFromObject(wanted), err)
	}
	return result != controllerutil.OperationResultNone, nil
}

// awaitApplied waits until all ManagedResources are applied, and calls report whenever the condition of one of them
// changes.
func awaitApplied(ctx context.Context, c client.Client, parcels []*parcel,
	report func(name string, condition resourcesv1alpha1.Condition),
) error {
	reported := map[string]string{}
	err := wait.PollUntilContextTimeout(ctx, tourInterval, tourTimeout, true, func(ctx context.Context) (bool, error) {
		missing := len(parcels)
		for _, p := range parcels {
			if err := c.Get(ctx, client.ObjectKeyFromObject(p.ManagedResource), p.ManagedResource); err != nil {
				return false, err
			}
			condition := appliedCondition(p.ManagedResource)
			if condition.Status == resourcesv1alpha1.ConditionTrue {
				missing--
			}
			if says := fmt.Sprintf("%s: %s", condition.Reason, condition.Message); says != reported[p.name] {
				reported[p.name] = says
				report(p.name, condition)
			}
		}
		return missing == 0, nil
	})
	if err == nil {
		return nil
	}
	for _, p := range parcels {
		if condition := appliedCondition(p.ManagedResource); condition.Status != resourcesv1alpha1.ConditionTrue {
			return fmt.Errorf("ManagedResource %s was not applied (%s: %s), see resource-manager.log: %w",
				client.ObjectKeyFromObject(p.ManagedResource), condition.Reason, condition.Message, err)
		}
	}
	return fmt.Errorf("waiting for the ManagedResources: %w", err)
}

// appliedCondition returns the condition ResourcesApplied of a ManagedResource for its current spec.
func appliedCondition(mr *resourcesv1alpha1.ManagedResource) resourcesv1alpha1.Condition {
	for _, condition := range mr.Status.Conditions {
		outdated := condition.Status == resourcesv1alpha1.ConditionTrue && mr.Status.ObservedGeneration != mr.Generation
		if condition.Type == resourcesv1alpha1.ResourcesApplied && !outdated {
			return condition
		}
	}
	return resourcesv1alpha1.Condition{
		Status: resourcesv1alpha1.ConditionUnknown, Reason: "Waiting", Message: "The resource-manager has not reconciled it yet.",
	}
}

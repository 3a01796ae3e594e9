package landscape

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RollOut updates all Deployments of the base cluster that use an image of this name to the new reference, and waits until
// their Pods run it.
func (l *Landscape) RollOut(ctx context.Context, name, reference string) error {
	c, err := l.Client()
	if err != nil {
		return err
	}
	repository := reference[:strings.LastIndex(reference, ":")]
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("finding Deployments that use the image %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if !slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return uses(&d, repository) }) {
		l.say("  No Deployment uses an image named %s.", repository)
	}
	for i := range list.Items {
		d := &list.Items[i]
		if !uses(d, repository) {
			continue
		}
		began := l.now()
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
				return err
			}
			replace(d, repository, reference)
			return c.Update(ctx, d, fieldOwner)
		})
		if err != nil {
			return fmt.Errorf("rolling out %s/%s: %w", d.Namespace, d.Name, err)
		}
		if err := l.waitFor(ctx, "kubelet", func() error { return rolledOut(ctx, c, d) }); err != nil {
			return err
		}
		l.say("  Deployment %s/%s runs the new image after %s", d.Namespace, d.Name, l.now().Sub(began).Round(100*time.Millisecond))
	}
	return nil
}

func uses(d *appsv1.Deployment, repository string) bool {
	for _, container := range d.Spec.Template.Spec.Containers {
		if strings.HasPrefix(container.Image, repository+":") {
			return true
		}
	}
	return false
}

func replace(d *appsv1.Deployment, repository, reference string) {
	for i := range d.Spec.Template.Spec.Containers {
		if container := &d.Spec.Template.Spec.Containers[i]; strings.HasPrefix(container.Image, repository+":") {
			container.Image = reference
		}
	}
}

func rolledOut(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
		return err
	}
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	s := d.Status
	if s.ObservedGeneration < d.Generation || s.UpdatedReplicas < replicas || s.Replicas > replicas || s.AvailableReplicas < replicas {
		return fmt.Errorf("the Deployment %s/%s: %d of %d Pods are updated and available", d.Namespace, d.Name,
			min(s.UpdatedReplicas, s.AvailableReplicas), replicas)
	}
	return nil
}

package highavailability

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webhook "github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// pageSize is the number of objects that are read per request.
const pageSize = 500

// unfit reads the workloads that the webhook handles and returns those that do not fit the number of nodes. Workloads
// are not cached, because they matter only when the second node is added or removed.
func (r *Reconciler) unfit(ctx context.Context, several bool) ([]workload, error) {
	types, err := r.failureToleranceTypes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the Namespaces with the label %s: %w", webhook.LabelConsider, err)
	}
	skip, err := labels.NewRequirement(webhook.LabelSkip, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("select by the label %s: %w", webhook.LabelSkip, err)
	}
	notSkipped := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*skip)}
	var unfit []workload
	for namespace, failureToleranceType := range types {
		for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}} {
			err := r.each(ctx, list, func(obj runtime.Object) {
				one := workloadOf(obj)
				if one.failureToleranceType = failureToleranceType; !one.fits(several) {
					unfit = append(unfit, one)
				}
			}, client.InNamespace(namespace), notSkipped)
			if err != nil {
				return nil, fmt.Errorf("read the workloads of Namespace %s: %w", namespace, err)
			}
		}
	}
	return unfit, nil
}

// failureToleranceTypes returns the namespaces that the webhook handles, with the value of the annotation of each.
func (r *Reconciler) failureToleranceTypes(ctx context.Context) (map[string]string, error) {
	types := map[string]string{}
	namespaces := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
	err := r.each(ctx, namespaces, func(obj runtime.Object) {
		namespace, ok := obj.(*metav1.PartialObjectMetadata)
		if ok && r.inScope(namespace.Name) {
			types[namespace.Name] = namespace.Annotations[webhook.AnnotationFailureTolerance]
		}
	}, client.MatchingLabels{webhook.LabelConsider: "true"})
	return types, err
}

// each reads a list page by page and calls take with each object.
func (r *Reconciler) each(ctx context.Context, list client.ObjectList, take func(runtime.Object), options ...client.ListOption) error {
	next := ""
	for {
		page, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return fmt.Errorf("%T is not a list", list)
		}
		err := within(ctx, func(ctx context.Context) error {
			return r.Reader.List(ctx, page, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, options...)...)
		})
		if err != nil {
			return err
		}
		err = meta.EachListItem(page, func(obj runtime.Object) error {
			take(obj)
			return nil
		})
		if next = page.GetContinue(); err != nil || next == "" {
			return err
		}
	}
}

package care

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/stalepods"
)

const kindMutating = "MutatingWebhookConfiguration"

// webhookFields are the fields of a webhook that remediation may change, and the fields on which the decision depends.
type webhookFields struct {
	name                string
	policy              **admissionregistrationv1.FailurePolicyType
	timeout             **int32
	namespaces, objects **metav1.LabelSelector
	rules               []admissionregistrationv1.RuleWithOperations
}

// fieldsOf returns the fields of all webhooks of a configuration.
func fieldsOf(object client.Object) (kind string, all []webhookFields) {
	switch object := object.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		kind = "ValidatingWebhookConfiguration"
		for i := range object.Webhooks {
			w := &object.Webhooks[i]
			all = append(all, webhookFields{w.Name, &w.FailurePolicy, &w.TimeoutSeconds, &w.NamespaceSelector, &w.ObjectSelector, w.Rules})
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		kind = kindMutating
		for i := range object.Webhooks {
			w := &object.Webhooks[i]
			all = append(all, webhookFields{w.Name, &w.FailurePolicy, &w.TimeoutSeconds, &w.NamespaceSelector, &w.ObjectSelector, w.Rules})
		}
	}
	return kind, all
}

// configurationOf returns the fields of a webhook configuration on which decisions depend.
func configurationOf(object client.Object) Configuration {
	kind, all := fieldsOf(object)
	configuration := Configuration{Kind: kind, Name: object.GetName(), Labels: object.GetLabels(), Annotations: object.GetAnnotations()}
	for _, each := range all {
		configuration.Webhooks = append(configuration.Webhooks, Webhook{
			Name: each.name, FailurePolicy: *each.policy, TimeoutSeconds: *each.timeout,
			NamespaceSelector: *each.namespaces, ObjectSelector: *each.objects, Rules: each.rules,
		})
	}
	return configuration
}

// remediate corrects problematic webhook configurations. Each one is changed at most once per period, so that gardenlet
// and a user's controller that reverts the change do not overwrite each other endlessly. It returns the time until the
// next change is allowed, or 0.
func (c *connection) remediate(
	ctx context.Context, cluster *Cluster, period time.Duration, now time.Time,
) (again time.Duration, err error) {
	var errs []error
	for _, configuration := range cluster.Webhooks {
		if _, changes := configuration.remediated(); len(changes) == 0 {
			continue
		}
		if wait := c.remediated[configuration.String()].Add(period).Sub(now); wait > 0 {
			if again == 0 || wait < again {
				again = wait
			}
			continue
		}
		c.remediated[configuration.String()] = now
		errs = append(errs, c.change(ctx, configuration.Kind, configuration.Name))
	}
	return again, errors.Join(errs...)
}

// change changes a webhook configuration if it is still the cached one.
func (c *connection) change(ctx context.Context, kind, name string) error {
	object := client.Object(&admissionregistrationv1.ValidatingWebhookConfiguration{})
	if kind == kindMutating {
		object = &admissionregistrationv1.MutatingWebhookConfiguration{}
	}
	if err := c.cached.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	before, ok := object.DeepCopyObject().(client.Object)
	wanted, changes := configurationOf(object).remediated()
	if !ok || len(changes) == 0 {
		return nil
	}
	_, all := fieldsOf(object)
	for i, webhook := range wanted.Webhooks {
		*all[i].policy, *all[i].timeout = webhook.FailurePolicy, webhook.TimeoutSeconds
		*all[i].namespaces, *all[i].objects = webhook.NamespaceSelector, webhook.ObjectSelector
	}
	object.SetAnnotations(wanted.Annotations)
	log.FromContext(ctx).Info("change a webhook configuration that may prevent the cluster from working",
		"configuration", wanted.String(), "changes", strings.Join(changes, "; "))
	err := c.client.Patch(
		ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldManager),
	)
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the watch reports later changes
	}
	return fmt.Errorf("change %s: %w", wanted, err)
}

// deletePods deletes stale Pods of the cluster. It returns the time until the next Pod becomes stale, or 0.
func (c *connection) deletePods(ctx context.Context, now time.Time) (again time.Duration, err error) {
	var pods corev1.PodList
	if err := c.cached.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("list the Pods of the cluster: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		judged := stalepods.Judge(&pods.Items[i], now)
		if wait := judged.Again.Sub(now); !judged.Again.IsZero() && (again == 0 || wait < again) {
			again = wait
		}
		errs = append(errs, stalepods.Delete(ctx, c.client, &pods.Items[i], judged))
	}
	return again, errors.Join(errs...)
}

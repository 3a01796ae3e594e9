package webhook

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/watches"
)

// registration maintains the configurations in the seed, except the CA bundle, which the manager of the certificates writes.
type registration struct {
	webhooks []Webhook
	options  Options
	client   client.Client
	uncached client.Reader
}

// addRegistration adds the controller that writes the configurations on startup, and when others change or delete them.
func addRegistration(mgr manager.Manager, webhooks []Webhook, options Options) error {
	r := &registration{webhooks: webhooks, options: options, client: mgr.GetClient(), uncached: mgr.GetAPIReader()}
	name := options.configurationName(TargetSeed)
	named := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // they are written on startup anyway
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetName() == name && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return e.Object.GetName() == name },
	}
	of := func(kind string) client.Object {
		return watches.Metadata(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
	}
	_, err := watches.Controller{Name: "webhook-registration", Reconciler: r, Workers: 1}.AddTo(mgr,
		watches.AtStart(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}),
		watches.Self(mgr.GetCache(), of("MutatingWebhookConfiguration"), named),
		watches.Self(mgr.GetCache(), of("ValidatingWebhookConfiguration"), named),
	)
	return err
}

// Reconcile writes the configurations. It deletes the configuration of a kind without webhooks.
func (r *registration) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	namespace := watches.MetadataOf("Namespace")
	if err := r.uncached.Get(ctx, client.ObjectKey{Name: r.options.Namespace}, namespace); err != nil {
		return reconcile.Result{}, fmt.Errorf("read the namespace of the extension: %w", err)
	}
	// The webhooks must not reject objects after the extension is uninstalled.
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: namespace.GetName(), UID: namespace.GetUID()}
	mutating, validating := configurations(r.webhooks, r.options, TargetSeed, nil)
	var errs []error
	for _, configuration := range objectsOf(mutating, validating) {
		errs = append(errs, r.write(ctx, configuration, owner))
	}
	meta := metav1.ObjectMeta{Name: r.options.configurationName(TargetSeed)}
	if mutating == nil {
		errs = append(errs, r.remove(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}))
	}
	if validating == nil {
		errs = append(errs, r.remove(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// remove deletes a configuration that has no webhooks any more.
func (r *registration) remove(ctx context.Context, configuration client.Object) error {
	if err := client.IgnoreNotFound(r.client.Delete(ctx, configuration)); err != nil {
		return fmt.Errorf("delete the webhook configuration %s: %w", configuration.GetName(), err)
	}
	return nil
}

// write applies a configuration.
func (r *registration) write(ctx context.Context, configuration client.Object, owner metav1.OwnerReference) error {
	configuration.SetOwnerReferences([]metav1.OwnerReference{owner})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return fmt.Errorf("encode the webhook configuration %s: %w", configuration.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	owned := client.FieldOwner(namePrefix + r.options.Name)
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owned, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the webhook configuration %s: %w", configuration.GetName(), err)
	}
	return nil
}

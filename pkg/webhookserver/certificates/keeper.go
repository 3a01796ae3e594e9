package certificates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// FieldManager owns the fields that the Keeper writes to webhook configurations.
const FieldManager = "resource-manager-certificates"

// checkPeriod is how often the Keeper checks for certificates to renew. A check costs one request.
const checkPeriod = 12 * time.Hour

// Options name the Secret of the certificates and the webhook configurations that must trust them.
type Options struct {
	// Secret holds the certificates and keys in the source cluster. It is created if it does not exist.
	Secret types.NamespacedName
	// DNSNames are the names by which API servers reach the webhooks.
	DNSNames []string
	// Configurations are the names of the webhook configurations in the target cluster. A configuration that does not exist
	// yet gets the CA bundle when it is created.
	Configurations []string
}

// Keeper issues and renews certificates, and writes the CA bundle to webhook configurations.
type Keeper struct {
	// Source and Target write to the clusters and read from their API servers, without caches.
	Source, Target client.Client
	Clock          clock.PassiveClock
	Options        Options
}

// Reconcile renews the certificates that are due. The whole state is in the Secret, so that it can continue after any
// failure.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	secret, err := k.secret(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	kept := parse(secret.Data)
	known, err := k.injectBundle(ctx, kept.bundle())
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted, err := kept.renewed(k.Options.DNSNames, k.Clock.Now(), known)
	if err != nil {
		return reconcile.Result{}, err
	}
	changed, err := k.keep(ctx, secret, wanted)
	if err != nil {
		return reconcile.Result{}, err
	}
	if changed {
		if _, err := k.injectBundle(ctx, wanted.bundle()); err != nil {
			return reconcile.Result{}, err
		}
	}
	if wanted.next != nil {
		return reconcile.Result{RequeueAfter: spread}, nil
	}
	return reconcile.Result{RequeueAfter: checkPeriod}, nil
}

func (k *Keeper) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.Source.Get(ctx, k.Options.Secret, secret)
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Options.Secret.Namespace, Name: k.Options.Secret.Name}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s with the certificates of the webhooks: %w", k.Options.Secret, err)
	}
	return secret, nil
}

// keep writes a state to the Secret, unless the Secret already contains it. It fails if the Secret has changed since it
// was read.
func (k *Keeper) keep(ctx context.Context, secret *corev1.Secret, wanted state) (changed bool, err error) {
	data, err := wanted.encode()
	if err != nil || equal(data, secret.Data) {
		return false, err
	}
	secret.Data = data
	write := func() error { return k.Source.Update(ctx, secret, client.FieldOwner(FieldManager)) }
	if secret.ResourceVersion == "" {
		write = func() error { return k.Source.Create(ctx, secret, client.FieldOwner(FieldManager)) }
	}
	if err := write(); err != nil {
		return false, fmt.Errorf("write Secret %s with the certificates of the webhooks: %w", k.Options.Secret, err)
	}
	log.FromContext(ctx).Info("Renewed certificates of the webhooks", "secret", k.Options.Secret.String(), "dnsNames", k.Options.DNSNames,
		"expires", wanted.server.certificate.NotAfter.UTC().Format(time.RFC3339))
	return true, nil
}

// injectBundle sets the CA bundle of all configurations, and reports whether all of them had it before.
func (k *Keeper) injectBundle(ctx context.Context, bundle []byte) (known bool, err error) {
	if len(bundle) == 0 {
		return false, nil
	}
	known = true
	var failures []error
	for _, name := range k.Options.Configurations {
		for _, configuration := range []client.Object{
			&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
		} {
			knew, err := k.injectInto(ctx, name, configuration, bundle)
			known = known && knew
			failures = append(failures, err)
		}
	}
	return known, errors.Join(failures...)
}

func (k *Keeper) injectInto(ctx context.Context, name string, configuration client.Object, bundle []byte) (knew bool, err error) {
	switch err := k.Target.Get(ctx, client.ObjectKey{Name: name}, configuration); {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read the webhook configuration %s: %w", name, err)
	}
	// A strategic merge patch merges the list of webhooks by name, so that only the CA bundles are owned.
	before, is := configuration.DeepCopyObject().(client.Object)
	if !is {
		return false, fmt.Errorf("the webhook configuration %s is a %T", name, configuration)
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if !setBundle(configuration, bundle) {
		return true, nil
	}
	if err := k.Target.Patch(ctx, configuration, patch, client.FieldOwner(FieldManager)); err != nil {
		return false, fmt.Errorf("write the CA bundle of the webhook configuration %s: %w", name, err)
	}
	return false, nil
}

// setBundle sets the CA bundle of all webhooks of a configuration, and reports whether a webhook changed.
func setBundle(configuration client.Object, bundle []byte) (changed bool) {
	set := func(config *admissionregistrationv1.WebhookClientConfig) {
		if !bytes.Equal(config.CABundle, bundle) {
			config.CABundle, changed = bundle, true
		}
	}
	switch configuration := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			set(&configuration.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			set(&configuration.Webhooks[i].ClientConfig)
		}
	}
	return changed
}

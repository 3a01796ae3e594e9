package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// Reasons of Events.
//
// +events:on=Seed
const (
	EventRotationFailed = "GardenletCertificateRotationFailed" // Warning: the client certificate of the gardenlet could not be renewed
)

const (
	// ControllerName names the controller in logs and metrics.
	ControllerName = "garden-kubeconfig"
	// firstRetry and lastRetry are the first and the longest delay of retries after a failed renewal. They are long because each attempt
	// creates a CertificateSigningRequest in the garden.
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
)

// Renewer keeps the kubeconfig Secret valid. It renews the client certificate when it is due or requested, and makes the
// connection use the kubeconfig in the Secret. The process does not need a restart.
type Renewer struct {
	Garden
	Connection *Connection
	// Recorder writes Events to the garden.
	Recorder events.EventRecorder
}

// AddToManager adds the controller. The manager's cache contains the metadata of the kubeconfig Secret.
func (r *Renewer) AddToManager(mgr manager.Manager) error {
	reference := r.Config.KubeconfigSecret
	if reference == nil {
		return nil
	}
	isOwn := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetNamespace() == reference.Namespace && object.GetName() == reference.Name
	})
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		For(&corev1.Secret{}, builder.OnlyMetadata, builder.WithPredicates(isOwn)).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// Reconcile renews the certificate if it is due, and requeues for the next renewal.
func (r *Renewer) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	own, err := readSecret(ctx, r.Seed, r.Config.KubeconfigSecret)
	if err != nil {
		return reconcile.Result{}, err
	}
	if own.config == nil {
		return reconcile.Result{}, r.replace(ctx, own)
	}
	if err := r.adopt(ctx, own.config); err != nil {
		return reconcile.Result{}, err
	}
	asked := own.secret.Annotations[constants.AnnotationGardenerOperation] == constants.OperationRenew
	certificate, err := certificateOf(own.config)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("key %s of Secret %s: %w", keyKubeconfig, client.ObjectKeyFromObject(own.secret), err)
	}
	if certificate == nil && !asked {
		return reconcile.Result{}, nil // a token or a password: its issuer renews it
	}
	if wait := renewAt(certificate, r.Config.KubeconfigValidity).Sub(r.Clock.Now()); wait > 0 && !asked {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := r.renew(ctx, own); err != nil {
		seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: r.SeedName}}
		r.Recorder.Eventf(seed, nil, corev1.EventTypeWarning, EventRotationFailed, "Renew",
			"The client certificate for the garden could not be renewed: %v", err)
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil // the watch reports the new Secret
}

// replace requests a certificate with the bootstrap kubeconfig, because the Secret is missing or empty. Who deploys the gardenlet deletes it to
// give the gardenlet new credentials. Without a bootstrap kubeconfig, the connection stays as it is.
func (r *Renewer) replace(ctx context.Context, own stored) error {
	found, err := r.bootstrap(ctx, own)
	if err != nil {
		return err
	}
	if found == nil {
		log.FromContext(ctx).Info("The Secret with the kubeconfig for the garden is missing or empty; keeping the current connection")
		return nil
	}
	if err := r.adopt(ctx, found); err != nil {
		return err
	}
	return r.endBootstrap(ctx, r.Connection)
}

// renew requests a new certificate, stores it and makes the connection use it.
func (r *Renewer) renew(ctx context.Context, own stored) error {
	present := settingsOf(r.Config).apply(own.config)
	issued, err := r.requester().request(ctx, present)
	if err != nil {
		return err
	}
	config := withCertificate(own.config, issued.certificate, issued.key)
	if err := writeSecret(ctx, r.Seed, r.Config.KubeconfigSecret, own, config, ""); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Renewed the client certificate for the garden", "request", issued.request)
	if err := r.Connection.Replace(settingsOf(r.Config).apply(config)); err != nil {
		return err
	}
	return r.refreshCA(ctx, r.Connection)
}

// adopt makes the connection use the kubeconfig in the Secret if it has changed.
func (r *Renewer) adopt(ctx context.Context, found *rest.Config) error {
	found = settingsOf(r.Config).apply(found)
	used := r.Connection.current.Load().config
	if used.Host == found.Host && used.BearerToken == found.BearerToken &&
		used.Username == found.Username && used.Password == found.Password &&
		bytes.Equal(used.CertData, found.CertData) && bytes.Equal(used.KeyData, found.KeyData) && bytes.Equal(used.CAData, found.CAData) {
		return nil
	}
	log.FromContext(ctx).Info("Using the changed kubeconfig for the garden")
	return r.Connection.Replace(found)
}

// renewAt returns when a certificate is renewed: within the configured share of its validity. The exact time depends on
// its content, so that it is the same after a restart. Without a certificate it is zero.
func renewAt(certificate *x509.Certificate, validity *v1alpha1.KubeconfigValidity) time.Time {
	if certificate == nil {
		return time.Time{}
	}
	least, most := float64(*validity.AutoRotationJitterPercentageMin)/100, float64(*validity.AutoRotationJitterPercentageMax)/100
	sum := sha256.Sum256(certificate.Raw)
	random := float64(binary.BigEndian.Uint64(sum[:8])) / float64(math.MaxUint64)
	share := least + random*(most-least)
	return certificate.NotBefore.Add(time.Duration(float64(certificate.NotAfter.Sub(certificate.NotBefore)) * share))
}

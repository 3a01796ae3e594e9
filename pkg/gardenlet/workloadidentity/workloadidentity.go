// Package workloadidentity writes tokens of the garden's WorkloadIdentities to Secrets of the seed, and renews them.
package workloadidentity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reasons of Events.
//
// +events:on=Secret for the token of a WorkloadIdentity
const (
	eventRequestFailed = "TokenRequestFailed" // Warning: the garden issued no token for the WorkloadIdentity
)

// actionRequest is the action of these Events.
const actionRequest = "RequestToken"

const (
	// ControllerName names the controller in logs and metrics.
	ControllerName = "token-requestor-workload-identity"
	// Purpose is the value of the label security.gardener.cloud/purpose on the Secrets.
	Purpose = "workload-identity-token-requestor"

	keyToken     = "token"
	fieldManager = "gardenlet"
	// Tokens are renewed after renewalShare of their lifetime, which counts up to renewalLimit. jitter spreads renewals.
	renewalShare = 0.5
	renewalLimit = 24 * time.Hour
	jitter       = 0.05
	// leastRenewal is the shortest time until a token is renewed.
	leastRenewal = 500 * time.Millisecond
	timeout      = 3 * time.Minute
	// maxContext limits the size of the parsed annotation, in bytes.
	maxContext = 4 << 10
)

// Reconciler maintains the tokens in Secrets.
type Reconciler struct {
	// Seed writes Secrets, and reads their metadata from a cache. Direct reads single Secrets from the API server.
	Seed   client.Client
	Direct client.Reader
	// Garden requests tokens.
	Garden   client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Random returns numbers in [0, 1). It may be called concurrently.
	Random func() float64
	// Lifetime is the requested lifetime of tokens.
	Lifetime        time.Duration
	ConcurrentSyncs int
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		For(&corev1.Secret{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(isSource))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.ConcurrentSyncs, ReconciliationTimeout: timeout,
			RateLimiter: requeue.Backoff(),
		}).
		Complete(r)
}

// isSource reports whether an object is a Secret for a token.
func isSource(object client.Object) bool {
	return object.GetLabels()[constants.LabelSecurityPurpose] == Purpose
}

// Reconcile requests a token if one is due, and requeues for the next renewal.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Direct.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isSource(secret) || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if wait := r.dueIn(secret); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	wait, err := r.renew(ctx, secret)
	if err != nil {
		r.Recorder.Eventf(secret, nil, corev1.EventTypeWarning, eventRequestFailed, actionRequest, "%v", err)
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// dueIn returns the time until the token of a Secret must be renewed. It is 0 if it must be renewed now.
func (r *Reconciler) dueIn(secret *corev1.Secret) time.Duration {
	at, err := time.Parse(time.RFC3339, secret.Annotations[constants.AnnotationWorkloadIdentityTokenRenewTimestamp])
	if err != nil || len(secret.Data[keyToken]) == 0 {
		return 0
	}
	return max(at.Sub(r.Clock.Now()), 0)
}

// renew requests a token and stores it. It returns the time until the next renewal.
func (r *Reconciler) renew(ctx context.Context, secret *corev1.Secret) (time.Duration, error) {
	identity, asked, err := r.read(secret.Annotations)
	if err != nil {
		return 0, reconcile.TerminalError(err) // a change of the Secret starts the next try
	}
	if err := r.Garden.SubResource("token").Create(ctx, identity, asked); err != nil {
		return 0, fmt.Errorf("request a token of WorkloadIdentity %s of the garden: %w", client.ObjectKeyFromObject(identity), err)
	}
	if asked.Status.Token == "" {
		return 0, fmt.Errorf("the garden returned no token for WorkloadIdentity %s", client.ObjectKeyFromObject(identity))
	}
	wait := r.renewalAfter(asked.Status.ExpirationTimestamp.Sub(r.Clock.Now()))
	renewal := r.Clock.Now().Add(wait).UTC().Format(time.RFC3339)
	before := secret.DeepCopy()
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, constants.AnnotationWorkloadIdentityTokenRenewTimestamp, renewal)
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[keyToken] = []byte(asked.Status.Token)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Seed.Patch(ctx, secret, patch, client.FieldOwner(fieldManager)); err != nil {
		return 0, fmt.Errorf("write the token to Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	log.FromContext(ctx).Info("Requested a token", "workloadIdentity", client.ObjectKeyFromObject(identity).String(), "renewal", renewal)
	return wait, nil
}

// read returns the WorkloadIdentity to which annotations refer, and the request for its token.
func (r *Reconciler) read(annotations map[string]string) (*securityv1alpha1.WorkloadIdentity, *securityv1alpha1.TokenRequest, error) {
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{
		Namespace: annotations[constants.AnnotationWorkloadIdentityNamespace], Name: annotations[constants.AnnotationWorkloadIdentityName],
	}}
	if identity.Namespace == "" || identity.Name == "" {
		return nil, nil, fmt.Errorf("the annotations %s and %s must refer to a WorkloadIdentity of the garden",
			constants.AnnotationWorkloadIdentityNamespace, constants.AnnotationWorkloadIdentityName)
	}
	asked := &securityv1alpha1.TokenRequest{
		Spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(r.Lifetime / time.Second))},
	}
	text := annotations[constants.AnnotationWorkloadIdentityContextObject]
	if text == "" {
		return identity, asked, nil
	}
	if len(text) > maxContext {
		return nil, nil, fmt.Errorf("the annotation %s has %d bytes, more than the %d allowed",
			constants.AnnotationWorkloadIdentityContextObject, len(text), maxContext)
	}
	asked.Spec.ContextObject = &securityv1alpha1.ContextObject{}
	if err := json.Unmarshal([]byte(text), asked.Spec.ContextObject); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the annotation %s is not a JSON object", constants.AnnotationWorkloadIdentityContextObject), err)
	}
	return identity, asked, nil
}

// renewalAfter returns the time until a token with the given lifetime is renewed.
func (r *Reconciler) renewalAfter(lifetime time.Duration) time.Duration {
	wait := float64(min(lifetime, renewalLimit)) * renewalShare
	return max(time.Duration(wait*(1+jitter*(2*r.Random()-1))), leastRenewal)
}

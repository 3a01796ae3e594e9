// Package tokenrequestor maintains tokens for ServiceAccounts of a target cluster. It stores them in Secrets of a
// source cluster, or of the target cluster, and renews them before they expire.
//
// Only the metadata of the source cluster's Secrets is cached. A due Secret is read individually, and its contents are
// dropped at the end of the reconcile. The reconciler remembers resourceVersions and times, so an idle Secret causes no
// requests.
package tokenrequestor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Options are the settings of a token requestor.
type Options struct {
	// Class is the value of the label resources.gardener.cloud/class on Secrets that it is responsible for; empty for all
	// Secrets, with and without the label.
	Class string
	// Namespaces are the namespaces of the source cluster whose Secrets it is responsible for; empty for all.
	Namespaces []string
	// Excludes reports whether a namespace of the source cluster is excluded from these; nil excludes none.
	Excludes func(namespace string) bool
	// AccountNamespace is the namespace of all ServiceAccounts and overrides annotations; empty to use the annotations.
	AccountNamespace string
	// AccountNamespaces and TargetNamespaces are the namespaces of the target cluster that are allowed for ServiceAccounts
	// and Secrets; empty for all.
	AccountNamespaces, TargetNamespaces []string
	// CleanUp enables the deletion of ServiceAccounts and Secrets that it created, once no Secret of the source cluster
	// references them.
	CleanUp bool
	// ClusterID is the identity of the source cluster.
	ClusterID string
	// ConcurrentSyncs is the number of Secrets that are reconciled concurrently.
	ConcurrentSyncs int
}

// Reconciler maintains the tokens of source Secrets. It is ready when its exported fields are set.
type Reconciler struct {
	// Source reads metadata from a cache and writes to the source cluster. Direct reads single Secrets from its API
	// server.
	Source client.Client
	Direct client.Reader
	// Core and Reviews access the target cluster at the address and with the CA bundle of Target.
	Core    corev1client.CoreV1Interface
	Reviews authenticationv1client.TokenReviewInterface
	Target  *rest.Config
	// Metadata reads and deletes objects of the target cluster during clean-up.
	Metadata metadata.Interface
	// Accounts watches the ServiceAccounts of the target cluster, without a timeout of requests. It is nil if a lost
	// ServiceAccount may be noticed only at the next renewal.
	Accounts metadata.Interface
	// ServerClock returns the time of the target cluster's API server.
	ServerClock *ServerClock
	Recorder    events.EventRecorder
	// Metrics may be nil.
	Metrics *Metrics
	Clock   clock.Clock
	// Random returns numbers in [0, 1). It may be called concurrently.
	Random  func() float64
	Options Options

	memories memories
	// objects prevents a clean-up from deleting an object that is just being created for another Secret.
	objects sync.RWMutex
}

// Reconcile requests a token for a source Secret if one is due, and schedules the next renewal.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Source.Get(ctx, request.NamespacedName, meta)
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("look for Secret %s of the source cluster: %w", request.NamespacedName, err)
	}
	if err != nil || !r.isSource(meta) {
		return reconcile.Result{}, r.leave(ctx, request.NamespacedName)
	}
	if rest := r.restOf(meta); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	next, err := r.reconcile(ctx, meta)
	if errors.Is(err, errGone) {
		return reconcile.Result{}, nil // an event will follow
	}
	if apierrors.IsConflict(err) {
		log.FromContext(ctx).V(1).Info("An object was changed by another client; retrying", "error", err.Error())
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return r.conclude(ctx, meta, next, err)
}

// errGone reports that a source Secret no longer exists, or is no longer a source Secret.
var errGone = errors.New("the Secret is gone")

// restOf returns how soon an unchanged source Secret must be reconciled; 0 for now.
func (r *Reconciler) restOf(meta *metav1.PartialObjectMetadata) time.Duration {
	known := r.memories.update(client.ObjectKeyFromObject(meta), func(*memory) {})
	if known.recheck || known.version == "" || known.version != meta.ResourceVersion {
		return 0
	}
	return max(known.next.Sub(r.Clock.Now()), 0)
}

// isSource reports whether this token requestor is responsible for a Secret.
func (r *Reconciler) isSource(secret metav1.Object) bool {
	labels := secret.GetLabels()
	return labels[resourcesv1alpha1.LabelPurpose] == resourcesv1alpha1.PurposeTokenRequestor &&
		(r.Options.Class == "" || labels[resourcesv1alpha1.LabelClass] == r.Options.Class) && r.inScope(secret.GetNamespace())
}

// inScope reports whether this token requestor is responsible for a namespace of the source cluster.
func (r *Reconciler) inScope(namespace string) bool {
	return (len(r.Options.Namespaces) == 0 || slices.Contains(r.Options.Namespaces, namespace)) &&
		(r.Options.Excludes == nil || !r.Options.Excludes(namespace))
}

// Package tokeninvalidator finds Secrets with static tokens of ServiceAccounts that disable automounting. It labels the
// Secrets, so that the webhook of the same name (pkg/webhooks/tokeninvalidator) makes the tokens invalid. It reads and
// writes only metadata and never has access to a token.
package tokeninvalidator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// fieldManager owns the labels. It differs from the field manager of ManagedResources, which would treat the labels as
	// part of their manifests.
	fieldManager = resourcesv1alpha1.FieldManager + "-token-invalidator"
	// requestTimeout limits the time of each request.
	requestTimeout = 30 * time.Second
)

// Options are the settings of the controller.
type Options struct {
	// ConcurrentSyncs is the number of Secrets that are reconciled concurrently.
	ConcurrentSyncs int
}

// Reconciler labels Secrets.
type Reconciler struct {
	target   client.Writer
	recorder events.EventRecorder
	metrics  Metrics
	options  Options

	cache   cache.Cache // set by AddToManager
	blocked *blocked
	// written holds the resourceVersions after the last changes, by name, until the cache shows them. A decision on an
	// older state changes nothing and is not reported.
	written sync.Map
}

// NewReconciler returns a reconciler that changes Secrets of the target cluster and writes Events there. Metrics may be
// the zero value.
func NewReconciler(target client.Writer, recorder events.EventRecorder, metrics Metrics, options Options) *Reconciler {
	return &Reconciler{
		target: target, recorder: recorder, metrics: metrics, options: options,
		blocked: &blocked{metrics: metrics, tokens: map[types.NamespacedName]block{}},
	}
}

// Reconcile updates the labels of one Secret.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := newSecret()
	if err := r.cache.Get(ctx, request.NamespacedName, secret); err != nil {
		r.blocked.end(request.NamespacedName)
		r.written.Delete(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	account := &corev1.ServiceAccount{}
	key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]}
	if err := r.cache.Get(ctx, key, account); err != nil {
		// Without its ServiceAccount, Kubernetes rejects the token and deletes the Secret.
		r.blocked.end(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pods, err := r.podsUsing(ctx, secret)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := decide(secret.Labels, unwanted(account), len(pods) > 0)
	if len(decision.labels) == 0 {
		r.written.Delete(request.NamespacedName)
	} else if changed, err := r.label(ctx, secret, decision.labels); err != nil || !changed {
		return reconcile.Result{}, r.explain(secret, account, err)
	}
	r.report(ctx, secret, account, decision.verdict, pods)
	return reconcile.Result{}, nil
}

// podsUsing returns the sorted names of the Pods that use a token.
func (r *Reconciler) podsUsing(ctx context.Context, secret *metav1.PartialObjectMetadata) ([]string, error) {
	pods := &corev1.PodList{}
	err := r.cache.List(ctx, pods, client.InNamespace(secret.Namespace), client.MatchingFields{usedIndex: secret.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the Pods that use Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	names := make([]string, 0, len(pods.Items))
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// label changes the labels of a Secret, unless the Secret was replaced since the decision. It reports whether the
// Secret changed.
func (r *Reconciler) label(ctx context.Context, secret *metav1.PartialObjectMetadata, labels map[string]*string) (bool, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": secret.UID, "labels": labels}})
	if err != nil {
		return false, fmt.Errorf("encode the patch of labels: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	after := secret.DeepCopy()
	err = r.target.Patch(ctx, after, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	switch {
	case apierrors.IsNotFound(err), isOther(err):
		return false, nil // events for the deletion and for a new Secret will follow
	case err != nil:
		return false, err
	}
	before, _ := r.written.Swap(client.ObjectKeyFromObject(secret), after.ResourceVersion)
	return before != after.ResourceVersion, nil
}

// isOther reports whether an update failed because the object was replaced by another one with the same name.
func isOther(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}

// explain returns the error of a change, if any. It reports an error that retries cannot solve in an Event.
func (r *Reconciler) explain(secret *metav1.PartialObjectMetadata, account *corev1.ServiceAccount, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("change the labels of Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	if !apierrors.IsInvalid(err) {
		return err
	}
	if r.blocked.begin(secret, reasonRefused) {
		r.warn(secret, account, reasonRefused, "The API server refuses to change the static token of ServiceAccount "+account.Name+
			". If this Secret is immutable, delete it, and create a new one if a token is needed: "+err.Error())
	}
	return reconcile.TerminalError(err)
}

// report reports the result for a token. A blocked change is reported once.
func (r *Reconciler) report(
	ctx context.Context, secret *metav1.PartialObjectMetadata, account *corev1.ServiceAccount, verdict verdict, pods []string,
) {
	logger := log.FromContext(ctx).WithValues("serviceAccount", account.Name)
	switch verdict {
	case inUse:
		if r.blocked.begin(secret, reasonInUse) {
			logger.Info("Did not invalidate a static token, because Pods use it", "pods", len(pods))
			r.warn(secret, account, reasonInUse, "The static token of ServiceAccount "+account.Name+
				" is invalidated only after these Pods, which use it, are gone: "+some(pods)+
				". Use a projected token (TokenRequest) in these Pods, or label the ServiceAccount "+
				resourcesv1alpha1.LabelTokenInvalidatorSkip+"=true")
		}
		return
	case foreign:
		if r.blocked.begin(secret, reasonOtherPurpose) {
			logger.Info("Did not invalidate a static token, because its Secret has another purpose")
			r.warn(secret, account, reasonOtherPurpose, "The static token of ServiceAccount "+account.Name+
				" is not changed, because the label "+resourcesv1alpha1.LabelPurpose+
				" gives this Secret another purpose. Remove the label to change the token")
		}
		return
	case invalidate:
		logger.Info("Labelled a Secret to invalidate its static token")
		r.metrics.invalidated.Inc()
		r.inform(secret, account, reasonInvalidated,
			"Labelled, so that the webhook invalidates the static token, because ServiceAccount "+account.Name+
				" has automountServiceAccountToken: false")
	case restore:
		logger.Info("Unlabelled a Secret to restore its static token")
		r.metrics.restored.Inc()
		r.inform(secret, account, reasonRestored,
			"Label removed, so that the static token becomes valid again, because ServiceAccount "+account.Name+
				" no longer has automountServiceAccountToken: false, or has the label "+resourcesv1alpha1.LabelTokenInvalidatorSkip)
	case rest:
	}
	r.blocked.end(client.ObjectKeyFromObject(secret))
}

// someNames is the maximum number of names in a message.
const someNames = 5

// some returns the first names of a list, and how many more there are.
func some(names []string) string {
	if len(names) <= someNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:someNames], ", "), len(names)-someNames)
}

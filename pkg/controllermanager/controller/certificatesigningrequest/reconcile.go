package certificatesigningrequest

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/csrapprover"
)

// Reasons of the conditions of CertificateSigningRequests, which are Gardener's.
const (
	reasonApproved  = "AutoApproved"
	reasonDenied    = "RequestDenied"
	messageApproved = "Auto approving gardenlet client certificate after SubjectAccessReview."
)

// requestTimeout limits the time of one decision.
const requestTimeout = 30 * time.Second

// reconciler decides about requests for certificates of gardenlets.
type reconciler struct {
	// client reads requests from the cache. live reads everything else, because a decision is final.
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
}

// Reconcile approves or denies one request. It returns an error, and tries again, if the requester has not the right yet.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.client.Get(ctx, request.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !csrapprover.Undecided(csr) {
		return reconcile.Result{}, nil
	}
	content, isSeed := Read(&csr.Spec)
	if !isSeed {
		return reconcile.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	facts, err := r.facts(ctx, &csr.Spec, content)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("CertificateSigningRequest %s for the gardenlet of Seed %s is not decided yet: %w", csr.Name, content.Seed, err)
	}
	refusal := Decide(content, facts, r.clock.Now())
	err = r.write(ctx, csr, refusal)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return reconcile.Result{}, nil // the watch reports the change
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("update the approval of CertificateSigningRequest %s: %w", csr.Name, err)
	}
	log.FromContext(ctx).Info("Decided a request for the certificate of a gardenlet", "seed", content.Seed, "user", csr.Spec.Username,
		"approved", refusal == "", "why", refusal)
	return reconcile.Result{}, nil
}

// facts reads what the decision depends on. Requests that are denied anyway need nothing.
func (r *reconciler) facts(ctx context.Context, spec *certificatesv1.CertificateSigningRequestSpec, content Request) (Facts, error) {
	var facts Facts
	if content.Flaw != "" {
		return facts, nil
	}
	if err := r.review(ctx, spec); err != nil || !content.Bootstrap {
		return facts, err
	}
	if content.TokenID != "" {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + content.TokenID}
		if err := client.IgnoreNotFound(r.live.Get(ctx, key, secret)); err != nil {
			return facts, fmt.Errorf("read the bootstrap token: %w", err)
		}
		facts.Description = string(secret.Data["description"])
	}
	seed := &corev1beta1.Seed{}
	err := r.live.Get(ctx, client.ObjectKey{Name: content.Seed}, seed)
	if apierrors.IsNotFound(err) {
		return facts, nil
	}
	if err != nil {
		return facts, fmt.Errorf("read the Seed: %w", err)
	}
	facts.Seed = seed
	facts.Renewing, err = r.renewing(ctx, seed)
	return facts, err
}

// renewing reports whether an operator requested a new kubeconfig, at the Seed or at the resource that deploys its gardenlet.
func (r *reconciler) renewing(ctx context.Context, seed *corev1beta1.Seed) (bool, error) {
	found := seed.Annotations[constants.AnnotationGardenerOperation] == constants.OperationRenewKubeconfig
	var errs []error
	for _, object := range []client.Object{&seedmanagementv1alpha1.ManagedSeed{}, &seedmanagementv1alpha1.Gardenlet{}} {
		err := r.live.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.Name}, object)
		errs = append(errs, client.IgnoreNotFound(err))
		found = found || object.GetAnnotations()[constants.AnnotationGardenerOperation] == constants.OperationRenewKubeconfig
	}
	if err := errors.Join(errs...); err != nil {
		return false, fmt.Errorf("read what deploys the gardenlet: %w", err)
	}
	return found, nil
}

// review returns an error unless the requester may request certificates of gardenlets.
func (r *reconciler) review(ctx context.Context, spec *certificatesv1.CertificateSigningRequestSpec) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: spec.Username, Groups: spec.Groups, UID: spec.UID, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create", Subresource: "seedclient",
		},
	}}
	for key, values := range spec.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := r.client.Create(ctx, review); err != nil {
		return fmt.Errorf("check the rights of the requester: %w", err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("the user %q may not create certificatesigningrequests/seedclient", conditiontext.Shorten(spec.Username, 100))
	}
	return nil
}

// write writes the decision, unless the request has changed.
func (r *reconciler) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, refusal string) error {
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonApproved, Message: messageApproved,
	}
	if refusal != "" {
		condition.Type, condition.Reason, condition.Message = certificatesv1.CertificateDenied, reasonDenied, conditiontext.ForCondition(refusal)
	}
	decided := csr.DeepCopy()
	decided.Status.Conditions = append(decided.Status.Conditions, condition)
	return r.client.SubResource("approval").Update(ctx, decided, controller.FieldManager)
}

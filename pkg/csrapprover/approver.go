// Package csrapprover approves or denies CertificateSigningRequests in the target cluster: those of kubelets for
// serving certificates, and those of gardener-node-agents and gardenadm for client certificates. Decisions depend on
// the request, the Nodes of the target cluster and the Machines of the source cluster.
//
// A decision is final. It is therefore based on fresh responses of the API servers, never only on a cache.
package csrapprover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// ControllerName names the controller in logs and metrics.
const ControllerName = "csr-approver"

// Texts of conditions and Events. The texts of conditions are those of gardener-resource-manager.
const (
	reasonApproved = "RequestApproved"
	reasonDenied   = "RequestDenied"

	textServing = "kubelet server certificate CSR"
	textClient  = "gardener-node-agent certificate CSR"

	eventAction = "Deny"
)

// Reasons of Events.
//
// +events:on=Node of the target cluster
const (
	eventReason = "ServingCertificateDenied" // Warning: the kubelet's request for a serving certificate was denied
)

const (
	// requestTimeout limits the time of each request.
	requestTimeout = 30 * time.Second
	// outdatedInterval is when a request is reconciled again that changed during the reconcile.
	outdatedInterval = time.Second
)

// Reconciler decides about CertificateSigningRequests.
type Reconciler struct {
	// Target reads CertificateSigningRequests from a cache, and writes their approval.
	Target client.Client
	// Direct reads Nodes of the target cluster without a cache.
	Direct client.Reader
	// Machines are used to check requests; nil disables these checks.
	Machines *Machines
	// Recorder writes Events in the target cluster.
	Recorder events.EventRecorder
	// Metrics may be the zero value.
	Metrics Metrics
	Clock   clock.PassiveClock
	// ConcurrentSyncs is the number of requests that are reconciled concurrently.
	ConcurrentSyncs int
}

// Reconcile approves or denies one undecided request. It returns an error if a fact could not be read or the decision
// could not be written. Then the request stays undecided, and a retry can help.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.Target.Get(ctx, request.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !Undecided(csr) {
		return reconcile.Result{}, nil
	}
	decision, err := r.decide(ctx, csr)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("CertificateSigningRequest %s is neither approved nor denied yet: %w", csr.Name, err)
	}
	if decision.verdict == noOpinion {
		return reconcile.Result{}, nil
	}
	err = r.write(ctx, csr, decision)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil // another client has changed or decided it
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("update the approval of CertificateSigningRequest %s: %w", csr.Name, err)
	}
	r.record(ctx, csr, decision)
	return reconcile.Result{}, nil
}

// decide reads facts until they suffice for a decision.
func (r *Reconciler) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (decision, error) {
	content, facts := parse(csr.Spec.Request), newFacts(r.Machines != nil)
	for {
		decision := decide(&csr.Spec, content, facts)
		if decision.verdict != ask {
			return decision, nil
		}
		if err := r.answer(ctx, decision.question, facts); err != nil {
			return decision, err
		}
	}
}

// answer reads the fact that a question names.
func (r *Reconciler) answer(ctx context.Context, question question, facts *facts) (err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	switch question.topic {
	case aboutNode:
		facts.nodes[question.name], err = r.node(ctx, question.name)
	case aboutMachine:
		facts.machines[question.name], err = r.Machines.get(ctx, question.name)
	case aboutMachinesOf:
		facts.machinesOf[question.name], err = r.Machines.ofNode(ctx, question.name)
	}
	return err
}

func (r *Reconciler) node(ctx context.Context, name string) (node, error) {
	object := &corev1.Node{}
	err := r.Direct.Get(ctx, client.ObjectKey{Name: name}, object)
	switch {
	case isAbsent(err):
		return node{}, nil
	case err != nil:
		return node{}, fmt.Errorf("read Node %q of the target cluster: %w", name, err)
	}
	return node{found: true, addresses: object.Status.Addresses}, nil
}

// isAbsent reports whether the API server reports that the object does not exist. It returns false if the API server
// does not serve the kind.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// write writes the decision, unless the request has changed.
func (r *Reconciler) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, decision decision) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	decided := csr.DeepCopy()
	decided.Status.Conditions = append(decided.Status.Conditions, conditionOf(csr.Spec.SignerName, decision))
	return r.Target.SubResource("approval").Update(ctx, decided)
}

// conditionOf returns the condition that records a decision. The API server sets the time.
func conditionOf(signer string, decision decision) certificatesv1.CertificateSigningRequestCondition {
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: reasonDenied,
	}
	doing, what := "Denying", textClient
	if decision.verdict == approve {
		condition.Type, condition.Reason, doing = certificatesv1.CertificateApproved, reasonApproved, "Approving"
	}
	if signer == certificatesv1.KubeletServingSignerName {
		what = textServing
	}
	condition.Message = conditiontext.ForCondition(fmt.Sprintf("%s %s (%s)", doing, what, decision.why))
	return condition
}

// record counts and logs a written decision. A denied kubelet gets an Event on its Node, because users check the Node
// when "kubectl logs" fails. Other requesters have no object for an Event.
func (r *Reconciler) record(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, decision decision) {
	r.Metrics.decided(decision, r.Clock.Since(csr.CreationTimestamp.Time))
	logr.FromContextOrDiscard(ctx).Info("Decided a CertificateSigningRequest", "approved", decision.verdict == approve,
		"request", decision.of, "user", conditiontext.Shorten(csr.Spec.Username, maxQuoted), "why", decision.why)
	name := nodeOfUser(&csr.Spec)
	if decision.verdict != deny || decision.of != ofKubelet || name == "" {
		return
	}
	// Like the Events of kubelets, the Event uses the name as UID, by which "kubectl describe node" finds it.
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	r.Recorder.Eventf(object, csr, corev1.EventTypeWarning, eventReason, eventAction, "%s",
		conditiontext.ForEvent(fmt.Sprintf("CertificateSigningRequest %s was denied: %s", csr.Name, decision.why)))
}

var errNoList = errors.New("the response is not a list: it has no resourceVersion")

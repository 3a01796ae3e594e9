package tokeninvalidator

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// Reasons of Warning Events, and of the metric of tokens that cannot be changed.
//
// +events:on=Secret with a static token, in the target cluster
const (
	reasonInUse        = "TokenInUse"            // Warning: the token stays valid, because Pods use it
	reasonOtherPurpose = "SecretHasOtherPurpose" // Warning: a label reserves the Secret for another purpose
	reasonRefused      = "SecretChangeRefused"   // Warning: the API server rejected the label
)

// Reasons of Normal Events.
//
// +events:on=Secret with a static token, in the target cluster
const (
	reasonInvalidated = "TokenInvalidated" // Normal: the Secret was labelled to invalidate its token
	reasonRestored    = "TokenRestored"    // Normal: the label was removed
)

// block is the reason why the token of a Secret could not be changed.
type block struct {
	uid    types.UID
	reason string
}

// blocked tracks the Secrets whose token cannot be changed, so that each is reported once.
type blocked struct {
	metrics Metrics

	mu     sync.Mutex
	tokens map[types.NamespacedName]block
}

// begin records that a token cannot be changed, and reports whether that is new.
func (b *blocked) begin(secret *metav1.PartialObjectMetadata, reason string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, now := client.ObjectKeyFromObject(secret), block{secret.UID, reason}
	before, found := b.tokens[key]
	if found && before == now {
		return false
	}
	if found {
		b.metrics.blocked.Add(-1, before.reason)
	}
	b.metrics.blocked.Add(1, reason)
	b.tokens[key] = now
	return true
}

// end records that the change of a token is no longer blocked.
func (b *blocked) end(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before, found := b.tokens[key]; found {
		b.metrics.blocked.Add(-1, before.reason)
		delete(b.tokens, key)
	}
}

// action is the action of all Events.
const action = "InvalidateToken"

func (r *Reconciler) warn(secret *metav1.PartialObjectMetadata, account *corev1.ServiceAccount, reason, text string) {
	r.recorder.Eventf(secret, referenceTo(account), corev1.EventTypeWarning, reason, action, "%s", conditiontext.ForEvent(text))
}

func (r *Reconciler) inform(secret *metav1.PartialObjectMetadata, account *corev1.ServiceAccount, reason, text string) {
	r.recorder.Eventf(secret, referenceTo(account), corev1.EventTypeNormal, reason, action, "%s", conditiontext.ForEvent(text))
}

func referenceTo(account *corev1.ServiceAccount) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name, UID: account.UID,
	}
}

package tokeninvalidator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// considered is the value of LabelTokenInvalidatorConsider that the controller sets.
const considered = "true"

// verdict is the decision about the token of a Secret.
type verdict int

const (
	// rest: the token is in the desired state.
	rest verdict = iota
	// invalidate: the token must become invalid.
	invalidate
	// restore: the token must become valid again.
	restore
	// inUse: the token must become invalid, but Pods still use it.
	inUse
	// foreign: the token would have to be changed, but the purpose label reserves the Secret for another purpose.
	foreign
)

// decision is a verdict with the required changes of labels: new values, nil to remove a label.
type decision struct {
	verdict verdict
	labels  map[string]*string
}

// unwanted reports whether the static tokens of a ServiceAccount must be invalid.
func unwanted(account *corev1.ServiceAccount) bool {
	_, skipped := account.Labels[resourcesv1alpha1.LabelTokenInvalidatorSkip]
	return !skipped && !ptr.Deref(account.AutomountServiceAccountToken, true)
}

// decide returns the decision for a Secret, given its labels, whether its token is unwanted, and whether Pods use it.
// An invalid token stays invalid even if Pods use it.
func decide(labels map[string]string, unwanted, used bool) decision {
	purpose, hasPurpose := labels[resourcesv1alpha1.LabelPurpose]
	_, isConsidered := labels[resourcesv1alpha1.LabelTokenInvalidatorConsider]
	if hasPurpose && purpose != resourcesv1alpha1.PurposeTokenInvalidator {
		if unwanted == isConsidered {
			return decision{verdict: rest}
		}
		return decision{verdict: foreign}
	}
	change := map[string]*string{}
	if !hasPurpose {
		change[resourcesv1alpha1.LabelPurpose] = ptr.To(resourcesv1alpha1.PurposeTokenInvalidator)
	}
	switch {
	case unwanted == isConsidered:
		return decision{rest, change}
	case !unwanted:
		change[resourcesv1alpha1.LabelTokenInvalidatorConsider] = nil
		return decision{restore, change}
	case used:
		return decision{inUse, change}
	}
	change[resourcesv1alpha1.LabelTokenInvalidatorConsider] = ptr.To(considered)
	return decision{invalidate, change}
}

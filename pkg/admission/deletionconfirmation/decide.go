package deletionconfirmation

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/confirmation"
)

// recordConfirmer stores in an object who confirmed its deletion. old is the stored object, or nil for a new one. A
// confirmation that is withdrawn and given again is that of another user.
func recordConfirmer(object, old metav1.Object, user string) {
	annotations, confirmer := object.GetAnnotations(), ""
	switch {
	case !confirmation.Is(object):
	case old != nil && confirmation.Is(old):
		confirmer = old.GetAnnotations()[constants.AnnotationDeletionConfirmedBy]
	default:
		confirmer = user
	}
	if confirmer == "" {
		delete(annotations, constants.AnnotationDeletionConfirmedBy)
		return
	}
	annotations[constants.AnnotationDeletionConfirmedBy] = confirmer
}

// approved returns an error if the Project demands that another user confirms the deletion of an object of a resource.
func approved(object metav1.Object, project *gardencorev1beta1.Project, resource, user string) error {
	for _, rule := range project.Spec.DualApprovalForDeletion {
		if rule.Resource != resource {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&rule.Selector)
		if err != nil {
			return fmt.Errorf("spec.dualApprovalForDeletion of the Project %s: %w", project.Name, err)
		}
		isAccount := strings.HasPrefix(user, serviceaccount.ServiceAccountUsernamePrefix)
		if !selector.Matches(labels.Set(object.GetLabels())) || isAccount && !ptr.Deref(rule.IncludeServiceAccounts, true) {
			continue
		}
		if object.GetAnnotations()[constants.AnnotationDeletionConfirmedBy] == user {
			return fmt.Errorf("the Project %s demands that two users agree to this deletion: %q confirmed it, so another user must delete "+
				"the object", project.Name, user)
		}
	}
	return nil
}

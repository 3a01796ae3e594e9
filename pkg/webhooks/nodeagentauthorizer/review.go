package nodeagentauthorizer

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

const reviewKind = "SubjectAccessReview"

// parseReview decodes a review of any version. The error does not quote its content.
func parseReview(body []byte) (metav1.TypeMeta, *authorizationv1.SubjectAccessReviewSpec, error) {
	var form metav1.TypeMeta
	if err := json.Unmarshal(body, &form); err != nil {
		return form, nil, fmt.Errorf("the body is not a JSON object with apiVersion and kind")
	}
	var spec *authorizationv1.SubjectAccessReviewSpec
	var err error
	switch {
	case form.Kind == reviewKind && form.APIVersion == authorizationv1.SchemeGroupVersion.String():
		review := &authorizationv1.SubjectAccessReview{}
		err, spec = json.Unmarshal(body, review), &review.Spec
	case form.Kind == reviewKind && form.APIVersion == authorizationv1beta1.SchemeGroupVersion.String():
		review := &authorizationv1beta1.SubjectAccessReview{}
		err = json.Unmarshal(body, review)
		spec = &authorizationv1.SubjectAccessReviewSpec{User: review.Spec.User, Groups: review.Spec.Groups}
		if attributes := review.Spec.ResourceAttributes; attributes != nil {
			spec.ResourceAttributes = (*authorizationv1.ResourceAttributes)(attributes)
		}
		if attributes := review.Spec.NonResourceAttributes; attributes != nil {
			spec.NonResourceAttributes = (*authorizationv1.NonResourceAttributes)(attributes)
		}
	default:
		return form, nil, fmt.Errorf("the body is not a %s of %s or %s",
			reviewKind, authorizationv1.SchemeGroupVersion, authorizationv1beta1.SchemeGroupVersion)
	}
	if err != nil {
		return form, nil, fmt.Errorf("the fields of the %s do not have the types of %s", reviewKind, form.APIVersion)
	}
	return form, spec, nil
}

// review is a response. Both versions have the same status.
type review struct {
	metav1.TypeMeta `json:",inline"`
	Spec            struct{}                                  `json:"spec"`
	Status          authorizationv1.SubjectAccessReviewStatus `json:"status"`
}

// Package accessreview reads the SubjectAccessReviews that API servers send to authorization webhooks, and answers them.
package accessreview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	strictjson "k8s.io/apimachinery/pkg/util/json"
)

const reviewKind = "SubjectAccessReview"

// MaxBody is the maximum size of a review in bytes. A review repeats data from the request line, the headers and the client
// certificate, and API servers accept up to 1 MiB of these.
const MaxBody = 1 << 20

// Read returns the specification of the review in a request, and the version and kind that the answer must have. The error has
// an HTTP status, and does not quote the request.
func Read(writer http.ResponseWriter, request *http.Request) (form metav1.TypeMeta, spec *authorizationv1.SubjectAccessReviewSpec, code int, err error) {
	body, code, err := readBody(writer, request)
	if err != nil {
		return form, nil, code, err
	}
	form, spec, err = parseReview(body)
	if err != nil {
		return form, nil, http.StatusBadRequest, err
	}
	return form, spec, http.StatusOK, nil
}

// Write answers a review. The error reports that the API server did not wait for the answer.
func Write(writer http.ResponseWriter, form metav1.TypeMeta, status authorizationv1.SubjectAccessReviewStatus) error {
	answer, err := json.Marshal(review{TypeMeta: form, Status: status})
	if err != nil {
		http.Error(writer, "the response cannot be encoded", http.StatusInternalServerError)
		return fmt.Errorf("encode the response: %w", err)
	}
	writer.Header().Set("Content-Type", "application/json")
	_, err = writer.Write(answer)
	return err
}

// parseReview decodes a review of any version. The error does not quote its content.
func parseReview(body []byte) (metav1.TypeMeta, *authorizationv1.SubjectAccessReviewSpec, error) {
	var form metav1.TypeMeta
	if err := strictjson.Unmarshal(body, &form); err != nil {
		return form, nil, fmt.Errorf("the body is not a JSON object with apiVersion and kind")
	}
	var spec *authorizationv1.SubjectAccessReviewSpec
	var err error
	switch {
	case form.Kind == reviewKind && form.APIVersion == authorizationv1.SchemeGroupVersion.String():
		review := &authorizationv1.SubjectAccessReview{}
		err, spec = strictjson.Unmarshal(body, review), &review.Spec
	case form.Kind == reviewKind && form.APIVersion == authorizationv1beta1.SchemeGroupVersion.String():
		review := &authorizationv1beta1.SubjectAccessReview{}
		err = strictjson.Unmarshal(body, review)
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

// readBody returns the body of a request, or an error with its HTTP status.
func readBody(writer http.ResponseWriter, request *http.Request) ([]byte, int, error) {
	if request.Method != http.MethodPost {
		writer.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, errors.New("the method of reviews must be POST")
	}
	if mediaType, _, err := mime.ParseMediaType(request.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, http.StatusUnsupportedMediaType, errors.New("the content type of reviews must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, MaxBody))
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the review is larger than the %d bytes allowed", MaxBody)
	case err != nil:
		return nil, http.StatusBadRequest, errors.New("the body could not be read completely")
	}
	return body, 0, nil
}

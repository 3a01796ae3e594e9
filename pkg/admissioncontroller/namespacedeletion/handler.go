// Package namespacedeletion rejects the deletion of the namespace of a Project that is not being deleted, and of a
// namespace with Shoots. Otherwise the namespace would take the credentials that the deletion of its Shoots needs.
package namespacedeletion

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/validate-namespace-deletion"

// New returns the handler. The reader must read from the garden without a cache: a Shoot that was just created counts.
func New(reader client.Reader) admission.Handler {
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		if request.Operation != admissionv1.Delete || request.SubResource != "" {
			return nil
		}
		namespace := &corev1.Namespace{}
		switch err := reader.Get(ctx, client.ObjectKey{Name: request.Name}, namespace); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("read Namespace %s: %w", request.Name, err)
		}
		project, err := projectOf(ctx, reader, namespace)
		if err != nil {
			return err
		}
		shoot, err := shootIn(ctx, reader, namespace.Name)
		if err != nil {
			return err
		}
		return decide(namespace, project, shoot)
	})
}

// decide returns an error if a namespace must not be deleted. project is its Project, or nil. shoot is the name of one of
// its Shoots, or empty.
func decide(namespace *corev1.Namespace, project *corev1beta1.Project, shoot string) error {
	switch {
	case namespace.DeletionTimestamp != nil, project == nil:
		return nil
	case project.DeletionTimestamp == nil:
		return admit.Refuse(http.StatusForbidden, "Namespace %s belongs to Project %s, which is not being deleted: delete the Project, which "+
			"deletes its namespace", namespace.Name, project.Name)
	case shoot != "":
		return admit.Refuse(http.StatusForbidden, "Namespace %s still contains Shoots, such as %s: delete them first", namespace.Name, shoot)
	}
	return nil
}

// projectOf returns the Project that a namespace belongs to, or nil.
func projectOf(ctx context.Context, reader client.Reader, namespace *corev1.Namespace) (*corev1beta1.Project, error) {
	name := namespace.Labels[constants.LabelProjectName]
	if name == "" {
		return nil, nil
	}
	project := &corev1beta1.Project{}
	switch err := reader.Get(ctx, client.ObjectKey{Name: name}, project); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Project %s: %w", name, err)
	}
	if project.Spec.Namespace == nil || *project.Spec.Namespace != namespace.Name {
		return nil, nil
	}
	return project, nil
}

// shootIn returns the name of a Shoot in a namespace, or an empty string.
func shootIn(ctx context.Context, reader client.Reader, namespace string) (string, error) {
	shoots := &metav1.PartialObjectMetadataList{}
	shoots.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	if err := reader.List(ctx, shoots, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return "", fmt.Errorf("list the Shoots in Namespace %s: %w", namespace, err)
	}
	if len(shoots.Items) == 0 {
		return "", nil
	}
	return shoots.Items[0].Name, nil
}

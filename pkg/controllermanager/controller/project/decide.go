package project

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// hashLength is the length of the hash in the name of a namespace.
const hashLength = 5

// refusal is why a Project cannot have its namespace. A retry does not help; the namespace or the Project has to change.
type refusal string

func (r refusal) Error() string { return string(r) }

// isRefusal reports whether an error is only a refusal.
func isRefusal(err error) bool {
	var refused refusal
	return errors.As(err, &refused)
}

// namespaceOf returns the name of the namespace of a Project: spec.namespace, or one that follows from its name and UID.
func namespaceOf(project *corev1beta1.Project) string {
	if project.Spec.Namespace != nil {
		return *project.Spec.Namespace
	}
	hash := sha256.Sum256([]byte(project.UID))
	return constants.PrefixProjectNamespace + project.Name + "-" + hex.EncodeToString(hash[:])[:hashLength]
}

// owner returns the reference of objects to their Project. The garbage collector deletes them after it.
func owner(project *corev1beta1.Project) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Project", Name: project.Name, UID: project.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
	}
}

// namespaceLabels are the labels of the namespace of a Project.
func namespaceLabels(project *corev1beta1.Project) map[string]string {
	return map[string]string{constants.LabelGardenRole: constants.RoleProject, constants.LabelProjectName: project.Name}
}

// newNamespace returns the namespace of a Project that does not exist yet.
func newNamespace(project *corev1beta1.Project) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespaceOf(project), Labels: namespaceLabels(project), OwnerReferences: []metav1.OwnerReference{owner(project)},
		Annotations: map[string]string{
			constants.AnnotationNamespaceProject: string(project.UID), constants.AnnotationNamespaceCreatedByProjectController: "true",
		},
	}}
}

// belongs reports whether a namespace belongs to a Project: the controller made or adopted it for this Project.
func belongs(namespace metav1.Object, project *corev1beta1.Project) bool {
	return namespace.GetAnnotations()[constants.AnnotationNamespaceProject] == string(project.UID)
}

// claim changes an existing namespace to that of a Project, and reports whether it changed anything. It returns a refusal if the
// namespace must not be used: only one with the labels for this Project can be adopted, because members have rights in it. Which of
// several Projects gets a namespace depends only on the namespace.
func claim(namespace metav1.Object, project *corev1beta1.Project) (changed bool, err error) {
	name, uid := namespace.GetName(), namespace.GetAnnotations()[constants.AnnotationNamespaceProject]
	foreign := metav1.GetControllerOf(namespace)
	switch {
	case namespace.GetDeletionTimestamp() != nil:
		return false, refusal(fmt.Sprintf("Namespace %s is being deleted", name))
	case uid != "" && uid != string(project.UID):
		return false, refusal(fmt.Sprintf("Namespace %s belongs to another Project: its annotation %s is %s", name, constants.AnnotationNamespaceProject, uid))
	case foreign != nil && foreign.UID != project.UID:
		return false, refusal(fmt.Sprintf("Namespace %s belongs to %s %s, which is its controller", name, foreign.Kind, foreign.Name))
	case uid == "" && !hasAll(namespace.GetLabels(), namespaceLabels(project)):
		return false, refusal(fmt.Sprintf("Namespace %s exists, and lacks the labels %s=%s and %s=%s: it can only be used if an operator has set them",
			name, constants.LabelGardenRole, constants.RoleProject, constants.LabelProjectName, project.Name))
	}
	annotations := maps.Clone(namespace.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if uid == "" {
		annotations[constants.AnnotationNamespaceProject] = string(project.UID)
		if _, set := annotations[constants.AnnotationNamespaceKeepAfterProjectDeletion]; !set {
			annotations[constants.AnnotationNamespaceKeepAfterProjectDeletion] = "true"
		}
		changed = true
	}
	if !hasAll(namespace.GetLabels(), namespaceLabels(project)) {
		merged := maps.Clone(namespace.GetLabels())
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, namespaceLabels(project))
		namespace.SetLabels(merged)
		changed = true
	}
	if foreign == nil {
		namespace.SetOwnerReferences(append(slices.Clone(namespace.GetOwnerReferences()), owner(project)))
		changed = true
	}
	namespace.SetAnnotations(annotations)
	return changed, nil
}

// keeps reports whether a namespace outlives its Project.
func keeps(namespace metav1.Object) bool {
	keep, _ := strconv.ParseBool(namespace.GetAnnotations()[constants.AnnotationNamespaceKeepAfterProjectDeletion])
	return keep
}

// release removes everything that makes a namespace that of a Project.
func release(namespace metav1.Object, project *corev1beta1.Project) {
	labels, annotations := maps.Clone(namespace.GetLabels()), maps.Clone(namespace.GetAnnotations())
	for key := range namespaceLabels(project) {
		delete(labels, key)
	}
	for _, key := range []string{
		constants.AnnotationNamespaceProject, constants.AnnotationNamespaceKeepAfterProjectDeletion, constants.AnnotationNamespaceCreatedByProjectController,
	} {
		delete(annotations, key)
	}
	namespace.SetLabels(labels)
	namespace.SetAnnotations(annotations)
	namespace.SetOwnerReferences(slices.DeleteFunc(slices.Clone(namespace.GetOwnerReferences()), func(reference metav1.OwnerReference) bool {
		return reference.UID == project.UID
	}))
}

// hasAll reports whether a map has all wanted entries.
func hasAll(values, wanted map[string]string) bool {
	for key, value := range wanted {
		if values[key] != value {
			return false
		}
	}
	return true
}

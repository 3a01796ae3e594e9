package project

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// dev returns a Project.
func dev() *corev1beta1.Project {
	return &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev", UID: "u-dev"}}
}

// existing returns the metadata of a namespace.
func existing(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	namespace := watches.MetadataOf("Namespace")
	namespace.Name = "garden-dev"
	if change != nil {
		change(namespace)
	}
	return namespace
}

func TestNamespaceOf(t *testing.T) {
	project := dev()
	if got := namespaceOf(project); got != "garden-dev-3566c" {
		t.Errorf("the namespace is %s", got)
	}
	project.UID = "another"
	if got := namespaceOf(project); got == "garden-dev-3566c" || !strings.HasPrefix(got, "garden-dev-") {
		t.Errorf("the namespace of another Project with the same name is %s", got)
	}
	project.Spec.Namespace = ptr.To("garden-x")
	if got := namespaceOf(project); got != "garden-x" {
		t.Errorf("the namespace is %s", got)
	}
}

func TestClaim(t *testing.T) {
	labelled := func(n *metav1.PartialObjectMetadata) { n.Labels = namespaceLabels(dev()) }
	adopted := func(n *metav1.PartialObjectMetadata) {
		labelled(n)
		n.Annotations = map[string]string{constants.AnnotationNamespaceProject: "u-dev", constants.AnnotationNamespaceKeepAfterProjectDeletion: "true"}
		n.OwnerReferences = []metav1.OwnerReference{owner(dev())}
	}
	for name, test := range map[string]struct {
		change  func(*metav1.PartialObjectMetadata)
		refused string
		changed bool
		keep    bool
	}{
		"no labels":       {change: nil, refused: "lacks the labels gardener.cloud/role=project and project.gardener.cloud/name=dev"},
		"only one label":  {change: func(n *metav1.PartialObjectMetadata) { labelled(n); delete(n.Labels, constants.LabelGardenRole) }, refused: "lacks the labels"},
		"of another name": {change: func(n *metav1.PartialObjectMetadata) { labelled(n); n.Labels[constants.LabelProjectName] = "prod" }, refused: "lacks the labels"},
		"of another UID": {change: func(n *metav1.PartialObjectMetadata) {
			adopted(n)
			n.Annotations[constants.AnnotationNamespaceProject] = "u"
		}, refused: "belongs to another Project"},
		"controlled": {change: func(n *metav1.PartialObjectMetadata) {
			labelled(n)
			n.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "o", UID: "o", Controller: ptr.To(true)}}
		}, refused: "belongs to Other o"},
		"being deleted": {change: func(n *metav1.PartialObjectMetadata) { adopted(n); n.DeletionTimestamp = &metav1.Time{} }, refused: "is being deleted"},
		"labelled":      {change: labelled, changed: true, keep: true},
		"labelled, not kept": {change: func(n *metav1.PartialObjectMetadata) {
			labelled(n)
			n.Annotations = map[string]string{constants.AnnotationNamespaceKeepAfterProjectDeletion: "false"}
		}, changed: true},
		"own":           {change: adopted, keep: true},
		"own, no label": {change: func(n *metav1.PartialObjectMetadata) { adopted(n); n.Labels = nil }, changed: true, keep: true},
		"own, no owner": {change: func(n *metav1.PartialObjectMetadata) { adopted(n); n.OwnerReferences = nil }, changed: true, keep: true},
		"own, not to keep": {change: func(n *metav1.PartialObjectMetadata) {
			adopted(n)
			delete(n.Annotations, constants.AnnotationNamespaceKeepAfterProjectDeletion)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			project := dev()
			project.Spec.Namespace = ptr.To("garden-dev")
			namespace := existing(test.change)
			changed, err := claim(namespace, project)
			if test.refused != "" {
				if err == nil || !isRefusal(err) || !strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), "garden-dev") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || changed != test.changed {
				t.Errorf("changed: %t, error: %v", changed, err)
			}
			if !belongs(namespace, project) || !hasAll(namespace.Labels, namespaceLabels(project)) || len(namespace.OwnerReferences) != 1 || keeps(namespace) != test.keep {
				t.Errorf("the namespace is %+v", namespace.ObjectMeta)
			}
			if again, err := claim(namespace, project); again || err != nil {
				t.Errorf("a second claim changes: %t, error: %v", again, err)
			}
		})
	}
}

// TestClaimOrder checks that of two Projects with one namespace, the same one gets it in any order: that for which the namespace was
// made.
func TestClaimOrder(t *testing.T) {
	first, second := dev(), dev()
	second.Name, second.UID = "aaa", "u-aaa" // before the other one in lists
	for _, project := range []*corev1beta1.Project{first, second} {
		project.Spec.Namespace = ptr.To("garden-shared")
	}
	made := newNamespace(first)
	for _, order := range [][]*corev1beta1.Project{{first, second}, {second, first}} {
		for _, project := range order {
			if _, err := claim(made.DeepCopy(), project); (err == nil) != (project == first) {
				t.Errorf("Project %s: %v", project.Name, err)
			}
		}
	}
}

func TestRelease(t *testing.T) {
	namespace := existing(func(n *metav1.PartialObjectMetadata) {
		n.Labels, n.Annotations = namespaceLabels(dev()), map[string]string{"other": "annotation"}
		n.Labels["other"] = "label"
		n.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", UID: "o"}}
	})
	project := dev()
	if _, err := claim(namespace, project); err != nil {
		t.Fatal(err)
	}
	release(namespace, project)
	if len(namespace.Labels) != 1 || len(namespace.Annotations) != 1 || len(namespace.OwnerReferences) != 1 || namespace.OwnerReferences[0].UID != "o" {
		t.Errorf("the namespace is %+v", namespace.ObjectMeta)
	}
}

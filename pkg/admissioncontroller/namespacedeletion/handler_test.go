package namespacedeletion

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func TestDecide(t *testing.T) {
	now := ptr.To(metav1.Now())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev"}}
	terminating := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev", DeletionTimestamp: now}}
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}
	deleting := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev", DeletionTimestamp: now}}
	for name, test := range map[string]struct {
		namespace *corev1.Namespace
		project   *corev1beta1.Project
		shoot     string
		refused   string
	}{
		"no Project":                             {namespace: namespace, shoot: "web"},
		"already terminating":                    {namespace: terminating, project: project, shoot: "web"},
		"of a Project":                           {namespace: namespace, project: project, refused: "Project dev, which is not being deleted"},
		"of a Project with Shoots":               {namespace: namespace, project: project, shoot: "web", refused: "Project dev"},
		"of a Project that goes":                 {namespace: namespace, project: deleting},
		"of a Project that goes, but has Shoots": {namespace: namespace, project: deleting, shoot: "web", refused: "contains Shoots, such as web"},
	} {
		err := decide(test.namespace, test.project, test.shoot)
		if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: got %v, want an error with %q", name, err, test.refused)
		}
	}
}

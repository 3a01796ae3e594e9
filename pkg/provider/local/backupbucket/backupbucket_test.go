package backupbucket

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestPlan(t *testing.T) {
	object := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}}
	golden.CheckPlan(t, "backupbucket", Plan(object), object.Status)
}

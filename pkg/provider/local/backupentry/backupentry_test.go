package backupentry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestPlan(t *testing.T) {
	object := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--blue--7a1f"}}
	object.Spec.BucketName = "bucket"
	golden.CheckPlan(t, "backupentry", Plan(object, map[string][]byte{"user": []byte("me")}, "/etc/buckets"), nil)
	object.Name = "source-" + object.Name
	plan := Plan(object, map[string][]byte{"accessKeyID": []byte("me")}, "/etc/buckets")
	if secret := plan.Bundles[0].Objects[0]; secret.GetNamespace() != "shoot--dev--blue" || secret.GetName() != "source-etcd-backup" {
		t.Errorf("the Secret of a source is %s/%s", secret.GetNamespace(), secret.GetName())
	}
	if secret, is := plan.Bundles[0].Objects[0].(*corev1.Secret); !is || secret.Data["hostPath"] != nil {
		t.Error("a bucket in S3 has a path on nodes")
	}
}

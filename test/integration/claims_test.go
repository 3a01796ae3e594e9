package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletePersistentVolumeClaims(t *testing.T) {
	for name, wanted := range map[string]bool{"asked for": true, "not asked for": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			mr := f.manage("set", fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %s}
spec:
  replicas: 0
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: db}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, f.namespace))
			patch := client.MergeFrom(mr.DeepCopy())
			mr.Spec.DeletePersistentVolumeClaims = ptr.To(wanted)
			must(t, f.client.Patch(f.ctx, mr, patch))
			f.reconcileOK("set")
			own := map[string]string{"app": "db"}
			labels := map[string]map[string]string{
				"data-db-0": own, "data-db-12": {"app": "db", "more": "labels"},
				// Claims of another StatefulSet with more labels, of no template, and without an ordinal.
				"data-db-replica-0": {"app": "db", "role": "replica"}, "logs-db-0": own, "db-0": own, "data-db-01": own, "data-db-x": own,
				// Claims that the selector does not match.
				"other": {"app": "other"}, "data-db-3": nil,
			}
			for claim, labels := range labels {
				must(t, f.client.Create(f.ctx, &corev1.PersistentVolumeClaim{
					ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: claim, Labels: labels},
					Spec: corev1.PersistentVolumeClaimSpec{
						AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
						Resources: corev1.VolumeResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
						},
					},
				}))
			}
			f.delete(mr)
			f.eventually("the right claims are deleted", func() bool {
				claims := &corev1.PersistentVolumeClaimList{}
				must(t, f.client.List(f.ctx, claims, client.InNamespace(f.namespace)))
				alive := map[string]bool{}
				for _, claim := range claims.Items {
					alive[claim.Name] = claim.DeletionTimestamp == nil
				}
				for claim := range labels {
					mine := claim == "data-db-0" || claim == "data-db-12"
					if !mine && !alive[claim] {
						t.Fatalf("PersistentVolumeClaim %s is deleted", claim)
					}
					if mine && alive[claim] == wanted {
						return false
					}
				}
				return true
			})
		})
	}
}

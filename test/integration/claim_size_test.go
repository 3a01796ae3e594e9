package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const claimVolume = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NS}
provisioner: example.org/none
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: NS}
spec: {storageClassName: NS, capacity: {storage: 100Gi}, accessModes: [ReadWriteOnce], claimRef: {namespace: NS, name: data}, hostPath: {path: /nowhere}}
`

// claim returns the manifest of a claim with a size.
func (f *fixture) claim(size, class string) string {
	return f.here("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: NS, " + replaceable + "}\n" +
		"spec: {storageClassName: " + class + ", accessModes: [ReadWriteOnce], resources: {requests: {storage: " + size + "}}}\n")
}

// TestClaimKeepsItsLargerSize expands a claim by hand. It is neither shrunk nor replaced, also if its manifest changes.
func TestClaimKeepsItsLargerSize(t *testing.T) {
	f := newFixture(t)
	f.manage("volume", f.here(claimVolume))
	f.reconcileOK("volume")
	f.manage("set", f.claim("20Gi", "NS"))
	f.reconcileOK("set")
	claim := &corev1.PersistentVolumeClaim{}
	read := func() *corev1.PersistentVolumeClaim {
		must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "data"}, claim))
		return claim
	}
	f.eventually("the claim is bound", func() bool { return read().Status.Phase == corev1.ClaimBound })
	uid := claim.UID
	sized := func(size string) {
		t.Helper()
		if got := read().Spec.Resources.Requests.Storage(); got.String() != size || claim.UID != uid {
			t.Errorf("the claim %s has the size %s, want %s %s", claim.UID, got, uid, size)
		}
	}
	f.patch(f.claim("20Gi", "NS"), "kubectl-patch", `{"spec":{"resources":{"requests":{"storage":"30Gi"}}}}`)
	for range 2 {
		wantContains(t, applied(f.reconcileOK("set")).Message, "PersistentVolumeClaim/"+f.namespace+"/data", "larger than in the manifest")
		sized("30Gi")
	}
	f.wantNoWrites("set")
	f.restart()
	f.wantNoWrites("set")

	f.secret("set", "objects.yaml", f.claim("10Gi", "NS"))
	f.reconcileOK("set")
	sized("30Gi")
	f.secret("set", "objects.yaml", f.claim("40000Mi", "NS"))
	if mr := f.reconcileOK("set"); applied(mr).Message != "All resources are applied." {
		t.Errorf("with a larger size, the message is %s", applied(mr).Message)
	}
	sized("40000Mi")
	f.secret("set", "objects.yaml", f.claim("39Gi", "NS")) // smaller than the live size, which the resource-manager owns
	wantContains(t, applied(f.reconcileOK("set")).Message, "larger than in the manifest")
	sized("40000Mi")
	f.wantNoWrites("set")
	f.secret("set", "objects.yaml", f.claim("50Gi", "NS"))
	f.reconcileOK("set")
	sized("50Gi")
}

// TestBoundClaimIsNotReplaced changes an immutable field of a bound claim that has the annotation for its replacement.
func TestBoundClaimIsNotReplaced(t *testing.T) {
	f := newFixture(t)
	f.manage("volume", f.here(claimVolume))
	f.reconcileOK("volume")
	f.manage("set", f.claim("20Gi", "NS"))
	f.reconcileOK("set")
	claim := &corev1.PersistentVolumeClaim{}
	key := types.NamespacedName{Namespace: f.namespace, Name: "data"}
	f.eventually("the claim is bound", func() bool {
		must(t, f.client.Get(f.ctx, key, claim))
		return claim.Status.Phase == corev1.ClaimBound
	})
	uid := claim.UID
	f.secret("set", "objects.yaml", f.claim("20Gi", "another"))
	mr, _, _ := f.reconcile("set")
	wantContains(t, applied(mr).Message, "not replaced: it is bound, and its data would be lost", "delete it yourself")
	must(t, f.client.Get(f.ctx, key, claim))
	if claim.UID != uid || claim.DeletionTimestamp != nil {
		t.Error("the claim is deleted")
	}
}

// TestStatefulSetIsNotReplacedWithItsClaims changes an immutable field of a StatefulSet whose deletion deletes its
// claims.
func TestStatefulSetIsNotReplacedWithItsClaims(t *testing.T) {
	f := newFixture(t)
	manifest := func(service, policy, annotation string) string {
		return f.here("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: NS, annotations: {" + annotation +
			"resources.gardener.cloud/delete-on-invalid-update: \"true\"}}\nspec: {serviceName: " + service + ", replicas: 0, " + policy +
			"selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: a, image: x}]}}}\n")
	}
	const deletes = "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}, "
	for _, test := range []struct {
		name, policy, annotation string
		replaced                 bool
	}{
		{"its claims would be deleted", deletes, "", false},
		{"its claims stay", "", "", true},
		{"its dependents are orphaned", deletes, "resources.gardener.cloud/deletion-propagation-on-invalid-update: Orphan, ", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.manage("set", manifest("one", test.policy, test.annotation))
			f.reconcileOK("set")
			before := f.object(manifest("one", "", ""))
			f.secret("set", "objects.yaml", manifest("two", test.policy, test.annotation))
			if test.replaced {
				f.reconcileUntil("set", "it is replaced", func(mr *resourcesv1alpha1.ManagedResource) bool {
					return applied(mr).Status == resourcesv1alpha1.ConditionTrue
				})
			} else {
				mr, _, _ := f.reconcile("set")
				wantContains(t, applied(mr).Message, "not replaced: its deletion would delete its PersistentVolumeClaims")
			}
			if got := f.object(manifest("one", "", "")).GetUID() != before.GetUID(); got != test.replaced {
				t.Errorf("replaced: %t", got)
			}
			f.delete(f.read("set"))
		})
	}
}

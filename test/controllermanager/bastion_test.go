package controllermanager

import (
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// bastion creates a Bastion of a Shoot on a seed.
func (l *lives) bastion(name, shoot, seed string) *operationsv1alpha1.Bastion {
	l.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(l, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "operations", "bastion.yaml"))
	kit.Must(l, err)
	bastion := &operationsv1alpha1.Bastion{}
	kit.Must(l, yaml.UnmarshalStrict(text, bastion))
	bastion.Name, bastion.Spec.ShootRef.Name, bastion.Spec.SeedName = name, shoot, &seed
	l.create(bastion)
	return bastion
}

// deletesBastions checks that Bastions are deleted when they expire, and when their Shoot is on another seed, is being deleted or is gone. Others stay.
func (l *lives) deletesBastions() {
	deleted, stays := l.shoot("deleted", nil), l.shoot("stays", nil)
	used := l.bastion("used", stays.Name, seedName)
	gone := func(reason string, bastion *operationsv1alpha1.Bastion) {
		l.Helper()
		kit.EventuallyTrue(l, "the Bastion is deleted, because "+reason, func() bool { return !l.exists(bastion) })
	}
	expired := l.bastion("expired", stays.Name, seedName)
	expired.Status.LastHeartbeatTimestamp = ptr.To(metav1.NewTime(time.Now().Add(-2 * time.Hour)))
	kit.WriteStatus(l, l.client, expired)
	gone("it got no heartbeat", expired)

	ofDeleted := l.bastion("deleted", deleted.Name, seedName)
	gone("its Shoot is on another seed", l.bastion("moved", stays.Name, "other"))
	l.delete(deleted)
	gone("its Shoot is being deleted", ofDeleted)
	gone("its Shoot does not exist", l.bastion("orphan", "absent", seedName))
	if !l.exists(used) || used.DeletionTimestamp != nil {
		l.Error("a Bastion in use was deleted")
	}
	for _, shoot := range []*corev1beta1.Shoot{deleted, stays} {
		l.remove(shoot)
	}
	gone("its Shoot is gone", used)
}

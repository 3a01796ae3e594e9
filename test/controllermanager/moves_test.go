package controllermanager

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// movedEntry is the BackupEntry of a Shoot that moves from Seed seedName to Seed evil.
const movedEntry = "shoot--dev--moving--1"

// move are the requests of the gardenlets of both Seeds while a Shoot moves.
type move struct{ *gardenlets }

// refused waits until the gardenlet of a Seed may not send a request.
func (m move) refused(seed, what string, send func(client.Client) error) {
	m.Helper()
	as := client.NewDryRunClient(m.as(seed))
	kit.Eventually(m, "the gardenlet of Seed "+seed+" may not "+what, func() string {
		err := send(as)
		if apierrors.IsForbidden(err) {
			return ""
		}
		return "got " + kit.TextOf(err)
	})
}

// permitted waits until the gardenlet of a Seed may send a request, and sends it.
func (m move) permitted(seed, what string, send func(client.Client) error) {
	m.Helper()
	m.may(seed, what, send)
	kit.Must(m, send(m.as(seed)))
}

// may waits until the gardenlet of a Seed may send a request.
func (m move) may(seed, what string, send func(client.Client) error) {
	m.Helper()
	as := client.NewDryRunClient(m.as(seed))
	kit.Eventually(m, "the gardenlet of Seed "+seed+" may "+what, func() string { return kit.TextOf(send(as)) })
}

func (m move) change(name, content string) func(client.Client) error {
	return func(as client.Client) error {
		return as.Patch(m.Context(), &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}}, merge(content))
	}
}

func (m move) release(as client.Client) error {
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: movedEntry}}
	return as.Status().Patch(m.Context(), entry, merge(`{"status":{"seedName":null}}`))
}

func (m move) read(as client.Client) error {
	return as.Get(m.Context(), client.ObjectKey{Namespace: project, Name: movedEntry}, &corev1beta1.BackupEntry{})
}

// credentials reads the credentials of the source's bucket, as gardenlet watches them.
func (m move) credentials(as client.Client) error {
	return listed(m.gardenlets, as, &corev1.SecretList{}, in("garden", "generated-bucket-bucket", seedName))
}

func (m move) remove(name string) func(client.Client) error {
	return func(as client.Client) error {
		return as.Delete(m.Context(), &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}})
	}
}

// source creates an entry that gives access to the backups in the source's bucket.
func (m move) source(owners []metav1.OwnerReference, bucket string) func(client.Client) error {
	return func(as client.Client) error {
		return as.Create(m.Context(), &corev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: constants.PrefixSourceBackupEntry + movedEntry, OwnerReferences: owners},
			Spec:       corev1beta1.BackupEntrySpec{BucketName: bucket, SeedName: ptr.To(evil)},
		})
	}
}

// TestGardenletsMoveOnlyTheirBackups leads the BackupEntry of a Shoot from one Seed to another, with the requests of both gardenlets. Before and
// after the move, the destination reads nothing of the source. In between, each changes the entry only as long as the other one does not have it.
func TestGardenletsMoveOnlyTheirBackups(t *testing.T) {
	m := move{newGardenlets(t)}
	shoot, owners := m.createMoving()
	const give, take = `{"spec":{"seedName":"evil"}}`, `{"spec":{"seedName":"evil","bucketName":"bucket-evil"}}`
	m.refused(evil, "take the entry before the move", m.change(movedEntry, take))
	m.refused(evil, "copy backups before the move", m.source(owners, "bucket-local"))
	m.refused(evil, "read credentials before the move", m.credentials)

	kit.Eventually(t, "the Shoot is bound to the destination", func() string { // controllers may change it at the same time
		m.exists(shoot)
		shoot.Spec.SeedName = ptr.To(evil)
		return kit.TextOf(m.client.SubResource("binding").Update(t.Context(), shoot))
	})
	m.may(evil, "keep the state of the Shoot", func(as client.Client) error {
		return as.Patch(t.Context(), &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: shoot.Name}}, merge(annotate))
	})
	m.refused(evil, "take the entry that the source has", m.change(movedEntry, take))
	m.refused(evil, "read credentials before the entry is handed over", m.credentials)
	m.refused(seedName, "move the entry into another bucket", m.change(movedEntry, `{"spec":{"bucketName":"bucket-evil"}}`))
	m.permitted(seedName, "hand the entry over", m.change(movedEntry, give))
	m.may(evil, "read credentials", m.credentials)
	m.refused(evil, "take the entry that the source has not given up", m.change(movedEntry, take))
	m.permitted(seedName, "give the entry up", m.release)
	m.may(seedName, "see that the entry is given up", m.read)
	m.may(seedName, "take it back", m.change(movedEntry, `{"spec":{"seedName":"local"}}`))
	m.refused(seedName, "take it back into the bucket of the destination", m.change(movedEntry, `{"spec":{"seedName":"local","bucketName":"bucket-evil"}}`))

	m.refused(evil, "copy backups for no Shoot", m.source(nil, "bucket-local"))
	m.permitted(evil, "copy backups", m.source(owners, "bucket-local"))
	m.permitted(evil, "take the entry into its bucket", m.change(movedEntry, take))
	m.refused(evil, "put the entry back into the bucket of the source", m.change(movedEntry, `{"spec":{"bucketName":"bucket-local"}}`))
	m.may(evil, "read credentials for the copy", m.credentials)
	m.refused(evil, "delete its entry", m.remove(movedEntry))
	m.refused(seedName, "delete the entry for the copy", m.remove(constants.PrefixSourceBackupEntry+movedEntry))
	m.permitted(evil, "end the copy", m.remove(constants.PrefixSourceBackupEntry+movedEntry))
	m.refused(evil, "read credentials after the move", m.credentials)
}

// createMoving creates a Shoot on Seed seedName, with its state and its entry.
func (m move) createMoving() (*corev1beta1.Shoot, []metav1.OwnerReference) {
	m.Helper()
	shoot := example(m.fixture, "shoot.yaml", &corev1beta1.Shoot{})
	shoot.ObjectMeta = metav1.ObjectMeta{Namespace: project, Name: "moving"}
	shoot.Spec.SeedName, shoot.Spec.DNS, shoot.Spec.Extensions, shoot.Spec.Resources = ptr.To(seedName), nil, nil, nil
	m.create(shoot)
	kit.Must(m, m.client.Status().Patch(m.Context(), shoot, merge(`{"status":{"seedName":"local","technicalID":"shoot--dev--moving"}}`)))
	m.create(&corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: shoot.Name}})
	owners := []metav1.OwnerReference{*metav1.NewControllerRef(shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))}
	entry := &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: movedEntry, OwnerReferences: owners},
		Spec:       corev1beta1.BackupEntrySpec{BucketName: "bucket-" + seedName, SeedName: ptr.To(seedName)},
	}
	m.create(entry)
	kit.Must(m, m.client.Status().Patch(m.Context(), entry, merge(`{"status":{"seedName":"local"}}`)))
	m.may(seedName, "keep the state of the Shoot", func(as client.Client) error {
		return as.Patch(m.Context(), &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: shoot.Name}}, merge(annotate))
	})
	return shoot, owners
}

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// rotationTimeout limits one step of a rotation, in which the API servers are rolled out several times.
const rotationTimeout = 15 * time.Minute

// servedRequests is how many requests of each user must succeed to show that the API server serves again.
const servedRequests = 100

// marker is an object that a user has written before a Shoot changes.
var marker = client.ObjectKey{Namespace: "default", Name: "kept"}

// lostByEtcd is how many writes of a user etcd may lose in one step of a rotation, which replaces its six members once or
// twice.
const lostByEtcd = 3

// TestShootRotation makes a Shoot highly available in real containers and rotates all of its credentials. Users write and
// read continuously. No request fails during the rotation, except for a few writes while etcd changes its leader. At the
// end, the old credentials are rejected.
func TestShootRotation(t *testing.T) {
	if !*updates {
		t.Skip("takes minutes: -landscape.updates")
	}
	c, f := onFleet(t)
	must(t, f.Up(c.ctx))
	c.within(fleetTimeout, "two API servers are ready", func() error { return c.serversReady(f, 2) })
	c.makeRoom(f)
	c.makeHighlyAvailable(f)
	old := c.credentialsOf(f)
	c.writeMarker(old)
	c.rotate(f, old)
}

// TestShootHibernation hibernates and wakes up a Shoot in real containers, and deletes it. Its objects still exist after
// the wake-up, no request fails while the API server should respond, and nothing is left at the end.
func TestShootHibernation(t *testing.T) {
	if !*updates {
		t.Skip("takes minutes: -landscape.updates")
	}
	c, f := onFleet(t)
	must(t, f.Up(c.ctx))
	latest := c.credentialsOf(f)
	c.writeMarker(latest)
	c.hibernate(f, latest)
	c.wakeUp(f, latest)
	c.deleteInUse(f, latest)
}

// credentials are the credentials of an administrator with a kubeconfig, and of a program with a token.
type credentials struct {
	user, program *rest.Config
	admin         client.Client
}

// credentialsOf returns the credentials that users get now.
func (c *cluster) credentialsOf(f *fleet.Fleet) credentials {
	c.t.Helper()
	must(c.t, f.WriteShootKubeconfig(c.ctx))
	user := c.shootConfig(f)
	admin := c.connection(user, false)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "program"}}
	for _, object := range []client.Object{account, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}} {
		must(c.t, client.IgnoreAlreadyExists(admin.Create(c.ctx, object)))
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}
	must(c.t, admin.SubResource("token").Create(c.ctx, account, request))
	return credentials{user, withToken(user, request.Status.Token), admin}
}

// withToken returns a configuration that has a token instead of a certificate.
func withToken(config *rest.Config, token string) *rest.Config {
	config = rest.CopyConfig(config)
	config.BearerToken, config.CertData, config.KeyData = token, nil, nil
	return config
}

// rotate rotates all credentials. The old ones work until users have new ones, and are rejected at the end.
func (c *cluster) rotate(f *fleet.Fleet, old credentials) {
	c.t.Helper()
	users := append(c.startUsers(old.user), c.startUser("program", c.connection(old.program, false)))
	c.operate(f, constants.OperationRotateCredentialsStart, corev1beta1.RotationPrepared)
	c.fewLost(users, "the first step of the rotation", lostByEtcd)
	latest := c.credentialsOf(f)
	for _, u := range users {
		u.connect(c.connection(latest.user, u.name == connectsEachTime))
	}
	users[len(users)-1].connect(c.connection(latest.program, false))
	c.operate(f, constants.OperationRotateCredentialsComplete, corev1beta1.RotationCompleted)
	c.fewLost(users, "the second step of the rotation", lostByEtcd)
	for _, u := range users {
		u.stop()
	}
	c.refused(old, latest)
}

// operate annotates the Shoot with an operation, and waits until the CAs and the service account key have reached a
// phase.
func (c *cluster) operate(f *fleet.Fleet, operation string, phase corev1beta1.CredentialsRotationPhase) {
	c.t.Helper()
	began := time.Now()
	shoot := c.shoot(f)
	must(c.t, f.Patch(c.ctx, shoot, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, constants.AnnotationGardenerOperation, operation))))
	c.within(rotationTimeout, operation, func() error {
		shoot := c.shoot(f)
		if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
			return errors.New("no rotation has started")
		}
		rotation := shoot.Status.Credentials.Rotation
		if rotation.CertificateAuthorities.Phase != phase || rotation.ServiceAccountKey.Phase != phase || rotation.ETCDEncryptionKey.Phase != corev1beta1.RotationCompleted {
			return fmt.Errorf("authorities %s, service account key %s, etcd encryption key %s: %+v", rotation.CertificateAuthorities.Phase, rotation.ServiceAccountKey.Phase,
				rotation.ETCDEncryptionKey.Phase, shoot.Status.LastOperation)
		}
		return f.ShootIsReady(c.ctx, shootOfFleet)
	})
	c.t.Logf("%s took %s", operation, time.Since(began).Round(100*time.Millisecond))
}

// refused fails unless the API server rejects old credentials, and has a certificate that their owners do not trust.
func (c *cluster) refused(old, latest credentials) {
	c.t.Helper()
	get := func(config *rest.Config) error {
		return c.connection(config, true).Get(c.ctx, marker, &corev1.Secret{})
	}
	for _, config := range []*rest.Config{old.user, old.program} {
		trusting := rest.CopyConfig(config)
		trusting.CAData = latest.user.CAData
		if err := get(trusting); !apierrors.IsUnauthorized(err) {
			c.t.Errorf("old credentials are not rejected (with a token: %t): %v", config.BearerToken != "", err)
		}
	}
	if err := get(old.user); err == nil || !strings.Contains(err.Error(), "x509") {
		c.t.Errorf("the API server has a certificate of the old authority: %v", err)
	}
}

// hibernate hibernates the Shoot, and checks that no Pod of its control plane is left.
func (c *cluster) hibernate(f *fleet.Fleet, latest credentials) {
	c.t.Helper()
	c.readsMarker(latest)
	c.changeShoot(f, "hibernation", func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)}
	})
	namespace := c.technicalID(f)
	c.eventually("the Pods of the Shoot are deleted", func() error {
		pods := &corev1.PodList{}
		if err := c.List(c.ctx, pods, client.InNamespace(namespace)); err != nil || len(pods.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d Pods still exist, one of them is %s", len(pods.Items), pods.Items[0].Name)
	})
	if !c.shoot(f).Status.IsHibernated {
		c.t.Error("the status does not report that the Shoot is hibernated")
	}
}

// wakeUp wakes up the Shoot, and checks that its objects still exist and that it serves.
func (c *cluster) wakeUp(f *fleet.Fleet, latest credentials) {
	c.t.Helper()
	c.changeShoot(f, "waking up", func(shoot *corev1beta1.Shoot) { shoot.Spec.Hibernation.Enabled = ptr.To(false) })
	c.readsMarker(latest)
	users := c.startUsers(latest.user)
	c.within(fleetTimeout, "users are served", func() error {
		for _, u := range users {
			if sent := u.sent(); sent < servedRequests {
				return fmt.Errorf("%s has sent %d requests", u.name, sent)
			}
		}
		return nil
	})
	for _, u := range users {
		u.stop()
	}
	c.noneFailed(users, "the time after the wake-up")
}

// writeMarker writes an object that must still exist after changes of the Shoot.
func (c *cluster) writeMarker(credentials credentials) {
	c.t.Helper()
	must(c.t, client.IgnoreAlreadyExists(credentials.admin.Create(c.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: marker.Namespace, Name: marker.Name}, Data: map[string][]byte{"color": []byte("green")},
	})))
}

func (c *cluster) readsMarker(credentials credentials) {
	c.t.Helper()
	kept := &corev1.Secret{}
	must(c.t, c.connection(credentials.user, true).Get(c.ctx, marker, kept))
	if string(kept.Data["color"]) != "green" {
		c.t.Errorf("the object written before has the data %v", kept.Data)
	}
}

// deleteInUse deletes the Shoot while a program uses it. The program is served until kube-apiserver is deleted.
func (c *cluster) deleteInUse(f *fleet.Fleet, latest credentials) {
	c.t.Helper()
	program := c.startUser("program", c.connection(latest.program, false))
	shoot, gone := c.shoot(f), make(chan error, 1)
	go func() { gone <- f.DeleteShoot(c.ctx) }()
	c.within(fleetTimeout, "kube-apiserver is deleted", func() error {
		bundle := &resourcesv1alpha1.ManagedResource{}
		err := c.Get(c.ctx, client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: "kube-apiserver"}, bundle)
		if err == nil && bundle.DeletionTimestamp == nil {
			return errors.New("it still exists")
		}
		return client.IgnoreNotFound(err)
	})
	program.stop()
	c.noneFailed([]*user{program}, "the deletion, before kube-apiserver was deleted")
	must(c.t, <-gone)
	c.nothingOfShootIsLeft(f, shoot)
}

// nothingOfShootIsLeft fails if the seed or the garden has objects of a deleted Shoot. Objects that controllers of the
// seed release asynchronously get time.
func (c *cluster) nothingOfShootIsLeft(f *fleet.Fleet, shoot *corev1beta1.Shoot) {
	c.t.Helper()
	bundles, configMaps := &resourcesv1alpha1.ManagedResourceList{}, &corev1.ConfigMapList{}
	secrets, states := &corev1beta1.InternalSecretList{}, &corev1beta1.ShootStateList{}
	must(c.t, c.List(c.ctx, bundles, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{flow.LabelOwner: string(shoot.UID)}))
	for _, mr := range bundles.Items {
		c.t.Errorf("ManagedResource %s/%s still exists", mr.Namespace, mr.Name)
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shoot.Status.TechnicalID}},
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: shoot.Status.TechnicalID}},
	} {
		if err := c.Get(c.ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			c.t.Errorf("%T %s still exists: %v", object, shoot.Status.TechnicalID, err)
		}
	}
	c.eventually("the objects of the Shoot in the garden are deleted", func() error {
		var left []string
		for _, list := range []client.ObjectList{configMaps, secrets, states} {
			if err := f.List(c.ctx, list, client.InNamespace(shoot.Namespace)); err != nil {
				return err
			}
			if err := meta.EachListItem(list, func(object runtime.Object) error {
				accessor, err := meta.Accessor(object)
				if err != nil {
					return err
				}
				if name := accessor.GetName(); name == shoot.Name || strings.HasPrefix(name, shoot.Name+".") {
					left = append(left, fmt.Sprintf("%T %s", object, name))
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("these still exist: %v", left)
		}
		return nil
	})
	c.eventually("the volumes of the Shoot are removed", func() error {
		volumes := &corev1.PersistentVolumeList{}
		if err := c.List(c.ctx, volumes); err != nil {
			return err
		}
		for _, volume := range volumes.Items {
			if claim := volume.Spec.ClaimRef; claim != nil && claim.Namespace == shoot.Status.TechnicalID {
				return fmt.Errorf("PersistentVolume %s of %s still exists", volume.Name, claim.Name)
			}
		}
		return nil
	})
}

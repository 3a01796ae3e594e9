package controllermanager

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// uses is a garden with two Shoots in a project. One uses a CloudProfile and a SecretBinding, the other one a NamespacedCloudProfile and
// a CredentialsBinding. Both bindings use a Quota.
type uses struct {
	*fixture
	profile     *corev1beta1.CloudProfile
	namespaced  *corev1beta1.NamespacedCloudProfile
	class       *corev1beta1.ExposureClass
	quota       *corev1beta1.Quota
	secrets     *corev1beta1.SecretBinding
	credentials *securityv1alpha1.CredentialsBinding
	identities  *securityv1alpha1.CredentialsBinding
	one, two    *corev1beta1.Shoot
}

// TestUses checks that objects are kept while others use them, and what follows from objects that others use. The steps depend on each
// other.
func TestUses(t *testing.T) {
	u := &uses{fixture: newFixture(t)}
	u.change("controllers: {", "controllers: {event: {ttlNonShootEvents: 1h}, ")
	u.prepare()
	u.start()
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"merged profile", u.mergesProfile}, {"protected", u.protects}, {"marked", u.marks}, {"ShootState", u.keepsState}, {"Events", u.expiresEvents}, {"rest", u.rests}, {"restart", u.restarts}, {"ManagedSeedSet", u.managesSeeds},
		{"kept while in use", u.keepsWhatIsUsed}, {"released", u.releases},
	} {
		before := u.T
		if !t.Run(step.name, func(t *testing.T) { u.T = t; step.run() }) {
			u.T = before
			t.FailNow()
		}
		u.T = before
	}
	sent, _ := u.requests(0)
	for _, event := range sent {
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
			t.Errorf("the controller-manager lacks the permission to %s %s", event.Verb, event.RequestURI)
		}
	}
}

// prepare creates the objects.
func (u *uses) prepare() {
	u.Helper()
	u.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project}})
	u.profile = example(u.fixture, "cloudprofile.yaml", &corev1beta1.CloudProfile{})
	u.namespaced = example(u.fixture, "namespacedcloudprofile.yaml", &corev1beta1.NamespacedCloudProfile{})
	u.class = example(u.fixture, "exposureclass.yaml", &corev1beta1.ExposureClass{})
	u.class.Scheduling = nil
	u.quota = example(u.fixture, "quota.yaml", &corev1beta1.Quota{})
	u.secrets = example(u.fixture, "secretbinding.yaml", &corev1beta1.SecretBinding{})
	u.credentials = &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "local"}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: project, Name: "local"},
		Quotas:         []corev1.ObjectReference{{Namespace: u.quota.Namespace, Name: u.quota.Name}},
	}
	u.identities = u.credentials.DeepCopy()
	u.identities.Name, u.identities.Quotas = "identities", nil
	u.identities.CredentialsRef.APIVersion, u.identities.CredentialsRef.Kind = securityv1alpha1.SchemeGroupVersion.String(), "WorkloadIdentity"
	u.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "local"}, Data: map[string][]byte{"key": []byte("value")}})
	u.create(u.identity())
	u.one, u.two = u.shoot("one"), u.shoot("two")
	u.one.Spec.SecretBindingName, u.one.Spec.CredentialsBindingName, u.one.Spec.ExposureClassName = ptr.To(u.secrets.Name), nil, ptr.To(u.class.Name)
	u.one.Spec.Kubernetes.Version = "1.33.4" // later versions have no SecretBindings
	u.two.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: corev1beta1.CloudProfileReferenceKindNamespacedCloudProfile, Name: u.namespaced.Name}
	for _, object := range []client.Object{u.profile, u.namespaced, u.class, u.quota, u.secrets, u.credentials, u.identities, u.one, u.two} {
		u.create(object)
	}
}

func (u *uses) shoot(name string) *corev1beta1.Shoot {
	u.Helper()
	shoot := example(u.fixture, "shoot.yaml", &corev1beta1.Shoot{})
	shoot.Name, shoot.Spec.Resources, shoot.Spec.DNS, shoot.Spec.Extensions, shoot.Spec.Hibernation = name, nil, nil, nil, nil
	shoot.Spec.Kubernetes.KubeAPIServer = nil
	return shoot
}

// used are the objects that others use.
func (u *uses) used() []client.Object {
	return []client.Object{u.profile, u.namespaced, u.class, u.quota, u.secrets, u.credentials}
}

// mergesProfile checks that the status of a NamespacedCloudProfile follows the profile and its parent.
func (u *uses) mergesProfile() {
	kit.EventuallyTrue(u, "the versions of the CloudProfile are classified", func() bool {
		return u.exists(u.profile) && u.profile.Status.Kubernetes != nil && len(u.profile.Status.Kubernetes.Versions) == 4 &&
			u.profile.Status.Kubernetes.Versions[0].Classification == corev1beta1.ClassificationSupported &&
			len(u.profile.Status.MachineImages) == 1 && len(u.profile.Status.MachineImages[0].Versions) == 1
	})
	spec := &u.namespaced.Status.CloudProfileSpec
	kit.EventuallyTrue(u, "the profile is merged with its parent", func() bool {
		return u.exists(u.namespaced) && spec.Type == "local" && len(spec.MachineTypes) == 2 && spec.MachineTypes[1].Name == "huge" &&
			*spec.Limits.MaxNodesTotal == 10 && u.namespaced.Status.ObservedGeneration == u.namespaced.Generation
	})
	kit.Change(u, u.client, u.profile, func() { u.profile.Spec.Regions = append(u.profile.Spec.Regions, corev1beta1.Region{Name: "other"}) })
	kit.EventuallyTrue(u, "the profile follows its parent", func() bool { return u.exists(u.namespaced) && len(spec.Regions) == 2 })
	kit.Change(u, u.client, u.namespaced, func() { u.namespaced.Spec.Limits.MaxNodesTotal = ptr.To[int32](7) })
	kit.EventuallyTrue(u, "a change is merged", func() bool { return u.exists(u.namespaced) && *spec.Limits.MaxNodesTotal == 7 })
}

// protects checks that the objects have the finalizer, also after it was removed by hand.
func (u *uses) protects() {
	protected := func() {
		for _, object := range u.used() {
			kit.EventuallyTrue(u, object.GetName()+" has the finalizer", func() bool {
				return u.exists(object) && controllerutil.ContainsFinalizer(object, constants.GardenerName)
			})
		}
	}
	protected()
	kit.Change(u, u.client, u.class, func() { u.class.Finalizers = nil })
	protected()
}

// keepsWhatIsUsed checks that objects in use cannot be deleted, and that Events name their users.
func (u *uses) keepsWhatIsUsed() {
	for object, user := range map[client.Object]string{
		u.profile: "NamespacedCloudProfile garden-dev/local-dev, Shoot garden-dev/one", u.namespaced: "Shoot garden-dev/two", u.class: "Shoot garden-dev/one",
		u.quota: "CredentialsBinding garden-dev/local, SecretBinding garden-dev/local", u.secrets: "Shoot garden-dev/one", u.credentials: "Shoot garden-dev/two",
	} {
		u.delete(object)
		kit.EventuallyTrue(u, "an Event of "+object.GetName()+" has "+user, func() bool {
			var events corev1.EventList
			kit.Must(u, u.client.List(u.Context(), &events))
			for _, event := range events.Items {
				if event.InvolvedObject.UID == object.GetUID() && event.Reason == "ResourceReferenced" && strings.HasSuffix(event.Message, ": "+user) {
					return true
				}
			}
			return false
		})
	}
	for _, object := range u.used() {
		if !u.exists(object) || object.GetDeletionTimestamp() == nil {
			u.Errorf("%T %s is not kept while it is being deleted", object, object.GetName())
		}
	}
}

// releases checks that objects are deleted after the last object that uses them.
func (u *uses) releases() {
	gone := func(objects ...client.Object) {
		for _, object := range objects {
			kit.EventuallyTrue(u, object.GetName()+" is deleted", func() bool { return !u.exists(object) })
		}
	}
	u.delete(u.one)
	gone(u.class, u.secrets)
	secret := u.secret()
	kit.EventuallyTrue(u, "the Secret has the marks of the other binding only", func() bool {
		return u.has(secret, []string{labelProvider, constants.LabelReferenceCredentialsBinding}, []string{constants.FinalizerCredentialsBinding})
	})
	u.quiet()
	for _, object := range []client.Object{u.profile, u.namespaced, u.credentials, u.quota} {
		if !u.exists(object) {
			u.Errorf("%T %s is not kept although it is still in use", object, object.GetName())
		}
	}
	u.delete(u.two)
	gone(u.namespaced, u.credentials, u.profile, u.quota)
	u.unmarked()
}

package controllermanager

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
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

// lives is a garden with a project, whose credentials have a Quota.
type lives struct {
	*fixture
	quota *corev1beta1.Quota
}

// TestShootControllers runs the controllers that act on single Shoots and Bastions. The steps are independent, except for the restart.
func TestShootControllers(t *testing.T) {
	l := &lives{fixture: newFixture(t)}
	l.prepare()
	l.start()
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"references", l.protectsReferences}, {"Bastions", l.deletesBastions}, {"lifetime", l.endsLifetime}, {"maintenance", l.maintains}, {"restart", func() { l.quiet(); l.restarts() }}, {"stopped", l.releasesAfterStop},
	} {
		before := l.T
		t.Run(step.name, func(t *testing.T) { l.T = t; step.run() })
		l.T = before
	}
	sent, _ := l.requests(0)
	for _, event := range sent {
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
			t.Errorf("the controller-manager lacks the permission to %s %s", event.Verb, event.RequestURI)
		}
	}
}

func (l *lives) prepare() {
	l.Helper()
	l.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project}})
	l.quota = example(l.fixture, "quota.yaml", &corev1beta1.Quota{})
	l.quota.Spec.ClusterLifetimeDays = ptr.To[int32](14)
	l.create(example(l.fixture, "cloudprofile.yaml", &corev1beta1.CloudProfile{}))
	l.create(l.quota)
	l.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "local"}, Data: map[string][]byte{"key": []byte("value")}})
	for name, quotas := range map[string][]corev1.ObjectReference{"local": nil, "trial": {{Namespace: l.quota.Namespace, Name: l.quota.Name}}} {
		l.create(&securityv1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: project, Name: "local"}, Quotas: quotas,
		})
	}
}

// shoot creates a Shoot that names nothing.
func (l *lives) shoot(name string, change func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	l.Helper()
	shoot := example(l.fixture, "shoot.yaml", &corev1beta1.Shoot{})
	shoot.Name, shoot.Spec.Resources, shoot.Spec.DNS, shoot.Spec.Extensions, shoot.Spec.Hibernation = name, nil, nil, nil, nil
	shoot.Spec.Kubernetes.KubeAPIServer, shoot.Spec.SeedName = nil, ptr.To(seedName)
	if change != nil {
		change(shoot)
	}
	l.create(shoot)
	kit.Change(l, l.client, shoot, func() { controllerutil.AddFinalizer(shoot, constants.GardenerName) }) // as gardenlet does
	return shoot
}

// remove deletes a Shoot as its gardenlet does, and waits until it is gone.
func (l *lives) remove(shoot *corev1beta1.Shoot) {
	l.Helper()
	l.delete(shoot)
	kit.Change(l, l.client, shoot, func() { controllerutil.RemoveFinalizer(shoot, constants.GardenerName) })
	kit.EventuallyTrue(l, "the Shoot is gone", func() bool { return !l.exists(shoot) })
}

func (l *lives) eventuallyHeld(object client.Object, want bool) {
	l.Helper()
	kit.EventuallyTrue(l, "the finalizer of "+object.GetName()+" is as it must be", func() bool {
		return l.exists(object) && controllerutil.ContainsFinalizer(object, constants.FinalizerReferenceProtection) == want
	})
}

func naming(kinds map[string]string) func(*corev1beta1.Shoot) {
	return func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Resources = nil
		for _, name := range []string{"shared", "config", "identity"} {
			if kind := kinds[name]; kind != "" {
				version := "v1"
				if kind == "WorkloadIdentity" {
					version = securityv1alpha1.SchemeGroupVersion.String()
				}
				shoot.Spec.Resources = append(shoot.Spec.Resources, corev1beta1.NamedResourceReference{
					Name: name, ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: version, Kind: kind, Name: name},
				})
			}
		}
	}
}

// protectsReferences checks that objects of all kinds are held as long as one of two Shoots names them, and that the Shoots are held until
// they have released them.
func (l *lives) protectsReferences() {
	shared := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "shared"}, Data: map[string][]byte{"key": []byte("value")}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "config"}}
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "identity"}}
	identity.Spec.Audiences, identity.Spec.TargetSystem.Type = []string{"cloud"}, "local"
	held := []client.Object{shared, config, identity}
	for _, object := range held {
		l.create(object)
	}
	all := map[string]string{"shared": "Secret", "config": "ConfigMap", "identity": "WorkloadIdentity"}
	one, two := l.shoot("one", naming(all)), l.shoot("two", naming(map[string]string{"shared": "Secret"}))
	for _, object := range append(held, one, two) {
		l.eventuallyHeld(object, true)
	}
	kit.Must(l, l.client.Delete(l.Context(), shared))
	kit.Change(l, l.client, one, func() { naming(map[string]string{"identity": "WorkloadIdentity"})(one) })
	l.eventuallyHeld(config, false)
	l.eventuallyHeld(identity, true)
	l.eventuallyHeld(shared, true) // the other Shoot names it
	l.remove(one)
	l.eventuallyHeld(identity, false)
	l.remove(two)
	kit.EventuallyTrue(l, "the Secret, which nothing names any more, is gone", func() bool { return !l.exists(shared) })
}

// releasesAfterStop checks that an object is released whose Shoot was changed while the controller-manager did not run.
func (l *lives) releasesAfterStop() {
	late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "config"}}
	if !l.exists(late) {
		l.create(late)
	}
	shoot := l.shoot("late", naming(map[string]string{"config": "ConfigMap"}))
	l.eventuallyHeld(late, true)
	l.eventuallyHeld(shoot, true)
	kit.Must(l, l.process.Stop(kit.WaitTimeout))
	kit.Change(l, l.client, shoot, func() { shoot.Spec.Resources = nil })
	l.start()
	l.eventuallyHeld(late, false)
	l.eventuallyHeld(shoot, false)
	l.remove(shoot)
}

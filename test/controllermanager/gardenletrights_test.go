package controllermanager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestGardenletRights checks that the gardenlet of a Seed may read exactly the Secrets that Shoots of that Seed reference, by
// name. The steps depend on each other.
func TestGardenletRights(t *testing.T) {
	f := newFixture(t)
	s := &grantedNames{fixture: f}
	s.prepare()
	f.start()
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"declared", s.declared}, {"changed by hand", s.changedByHand}, {"another name", s.changed}, {"policies", s.grantsOnlyNames}, {"rest", f.rests}, {"restart", f.restarts}, {"deleted", s.deleted},
	} {
		before := f.T
		if !t.Run(step.name, func(t *testing.T) { f.T = t; step.run() }) {
			f.T = before
			t.FailNow()
		}
		f.T = before
	}
	sent, _ := f.requests(0)
	for _, event := range sent {
		// It lists the metadata of Secrets. It reads that of single ones in namespace garden, and of those that the Shoot names, and changes their
		// finalizers.
		marked := event.ObjectRef.Namespace == "garden" && event.Verb == "get" || slices.Contains([]string{"named", "later"}, event.ObjectRef.Name) &&
			slices.Contains([]string{"get", "patch"}, event.Verb)
		if event.ObjectRef.Resource == "secrets" && event.Verb != "list" && !marked {
			t.Errorf("the controller-manager sent %s secrets/%s", event.Verb, event.ObjectRef.Name)
		}
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
			t.Errorf("the controller-manager lacks the permission to %s %s", event.Verb, event.ObjectRef.Resource)
		}
	}
}

type grantedNames struct {
	*fixture
	shoot *corev1beta1.Shoot
}

const roleName = "gardener.cloud:system:seed:" + seedName + ":gardenlet-rights"

// prepare creates a namespace with Secrets, and a Shoot that references one of them.
func (s *grantedNames) prepare() {
	s.Helper()
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project}})
	for _, name := range []string{"named", "later", "other"} {
		s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}})
	}
	s.create(example(s.fixture, "seed.yaml", &corev1beta1.Seed{}))
	s.shoot = example(s.fixture, "shoot.yaml", &corev1beta1.Shoot{})
	s.shoot.Namespace, s.shoot.Spec.SeedName = project, ptr.To(seedName)
	s.shoot.Spec.Resources, s.shoot.Spec.DNS = nil, nil
	s.names("named")
	s.create(s.shoot)
}

// names makes the Shoot reference a Secret.
func (s *grantedNames) names(secret string) {
	if s.shoot.Spec.Kubernetes.KubeAPIServer == nil {
		s.shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{}
	}
	server := s.shoot.Spec.Kubernetes.KubeAPIServer
	server.StructuredAuthorization = nil
	server.AdmissionPlugins = []corev1beta1.AdmissionPlugin{{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: ptr.To(secret)}}
}

// mayRead waits until the gardenlet of the Seed may read exactly these Secrets, by name, and checks that the gardenlet of
// another Seed may read none.
func (s *grantedNames) mayRead(want ...string) {
	s.Helper()
	kit.Eventually(s, fmt.Sprintf("the gardenlet may read %q", want), func() string {
		if got := s.readable(seedName); !slices.Equal(got, want) {
			return fmt.Sprintf("it may read %q", got)
		}
		return ""
	})
	if got := s.readable("another"); len(got) > 0 {
		s.Errorf("the gardenlet of another Seed may read %q", got)
	}
}

// readable returns the Secrets that the gardenlet of a Seed can list by name, as it watches them.
func (s *grantedNames) readable(seed string) []string {
	s.Helper()
	config := s.plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: constants.PrefixSeedUser + seed, Groups: []string{constants.SeedsGroup, "system:authenticated"}}
	as, err := client.New(config, client.Options{Scheme: s.client.Scheme()})
	kit.Must(s, err)
	var names []string
	for _, name := range []string{"later", "named", "other"} {
		var list corev1.SecretList
		err := as.List(s.Context(), &list, client.InNamespace(project), client.MatchingFields{"metadata.name": name})
		if err == nil {
			names = append(names, name)
		} else if !apierrors.IsForbidden(err) {
			kit.Must(s, err)
		}
	}
	if err := as.List(s.Context(), &corev1.SecretList{}, client.InNamespace(project)); !apierrors.IsForbidden(err) {
		s.Errorf("the gardenlet of Seed %s can list all Secrets: %v", seed, err)
	}
	return names
}

func (s *grantedNames) declared() { s.mayRead("named") }

// changedByHand checks that manual changes and deletions of the permissions are reverted.
func (s *grantedNames) changedByHand() {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: roleName}}
	kit.Must(s, s.client.Get(s.Context(), client.ObjectKeyFromObject(role), role))
	kit.Change(s, s.client, role, func() { role.Rules[0].ResourceNames = append(role.Rules[0].ResourceNames, "other") })
	s.mayRead("named")
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: roleName}}
	s.delete(binding)
	s.mayRead("named")
	s.delete(binding)
	s.create(&rbacv1.RoleBinding{ // it refers to another Role, and this reference is immutable
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: roleName, Labels: map[string]string{constants.LabelGardenRole: "gardenlet-rights"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "other"},
	})
	s.mayRead("named")
}

func (s *grantedNames) changed() {
	s.exists(s.shoot)
	kit.Change(s, s.client, s.shoot, func() { s.names("later") })
	s.mayRead("later")
}

// grantsOnlyNames checks that the policies refuse what the permissions of the controller-manager would allow beyond its task.
func (s *grantedNames) grantsOnlyNames() {
	config := s.plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	manager, err := client.New(config, client.Options{Scheme: s.client.Scheme(), Mapper: s.client.RESTMapper()})
	kit.Must(s, err)
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}
	named := secrets
	named.ResourceNames = []string{"a"}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: project, Name: name} }
	const ofSeed = "gardener.cloud:system:seed:third:gardenlet-rights"
	for what, object := range map[string]client.Object{
		"a Role of others":       &rbacv1.Role{ObjectMeta: meta("other"), Rules: []rbacv1.PolicyRule{named}},
		"a Role without names":   &rbacv1.Role{ObjectMeta: meta(ofSeed), Rules: []rbacv1.PolicyRule{secrets}},
		"a binding of a user":    &rbacv1.RoleBinding{ObjectMeta: meta(roleName), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "eve"}}},
		"a Secret of a project":  &corev1.Secret{ObjectMeta: meta("new")},
		"another Secret of Seed": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + seedName, Name: "new"}},
		"a ConfigMap":            &corev1.ConfigMap{ObjectMeta: meta("new")},
		"an InternalSecret":      &corev1beta1.InternalSecret{ObjectMeta: meta("new")},
		"a ShootState":           &corev1beta1.ShootState{ObjectMeta: meta("new")},
	} {
		kit.Eventually(s, what+" is refused", func() string {
			copied, _ := object.DeepCopyObject().(client.Object)
			if err := manager.Create(s.Context(), copied, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "controller-manager.gardener.cloud") {
				return kit.TextOf(err)
			}
			return ""
		})
	}
}

// deleted checks that the permissions are deleted with the last Shoot that references Secrets.
func (s *grantedNames) deleted() {
	s.exists(s.shoot)
	kit.Change(s, s.client, s.shoot, func() {
		metav1.SetMetaDataAnnotation(&s.shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
		s.shoot.Finalizers = nil
	})
	s.delete(s.shoot)
	s.mayRead()
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		kit.Eventually(s, "nothing is left", func() string {
			kit.Must(s, s.client.List(s.Context(), list, client.InNamespace(project), client.MatchingLabels{constants.LabelGardenRole: "gardenlet-rights"}))
			if text := fmt.Sprintf("%+v", list); strings.Contains(text, roleName) {
				return text
			}
			return ""
		})
	}
}

package apiserver

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

const ruledShoot = `
metadata: {namespace: garden-ruled, name: one}
spec:
  cloudProfile: {name: ruled}
  credentialsBindingName: none
  region: local
  kubernetes: {version: "1.34"}
  networking: {type: local, nodes: 10.20.0.0/16}
  provider:
    type: local
    workers: [{name: pool, minimum: 1, maximum: 2, machine: {type: medium}, volume: {type: fast, size: 50Gi}, zones: [a]}]`

// TestShootRules checks that the API server completes Shoots and compares them with their CloudProfile, Project and Seed.
func TestShootRules(t *testing.T) {
	t.Parallel()
	g := startGardenWith(t, garden.Options{ShootRules: true})
	c := newClientFor(t, g)
	forbidden := func(err error, text string) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want 403 with %q", err, text)
		}
	}
	ensureNamespace(t, c, "garden-ruled")
	shoot := &gardencorev1beta1.Shoot{}
	kit.Must(t, yaml.UnmarshalStrict([]byte(ruledShoot), shoot))
	forbidden(c.Create(t.Context(), shoot.DeepCopy()), `the CloudProfile "ruled" does not exist`)
	profile := exampleOf(t, "CloudProfile", "", "ruled", &gardencorev1beta1.CloudProfile{})
	profile.Spec.SeedSelector = nil
	kit.Must(t, c.Create(t.Context(), profile))
	forbidden(c.Create(t.Context(), shoot.DeepCopy()), "belongs to no Project")
	project := &gardencorev1beta1.Project{}
	project.Name, project.Spec.Namespace = "ruled", &shoot.Namespace
	kit.Must(t, c.Create(t.Context(), project))

	kit.Must(t, c.Create(t.Context(), shoot))
	machine := shoot.Spec.Provider.Workers[0].Machine
	if shoot.Spec.Kubernetes.Version != "1.34.2" || machine.Image == nil || *machine.Image.Version != "1.2.0" || *machine.Architecture != "amd64" {
		t.Errorf("the Shoot has Kubernetes %s and the machine %+v", shoot.Spec.Kubernetes.Version, machine)
	}
	changed := shoot.DeepCopy()
	changed.Spec.Provider.Workers[0].Machine.Type = "huge"
	forbidden(c.Update(t.Context(), changed), "does not have this machine type")

	seed := exampleOf(t, "Seed", "", "ruled", &gardencorev1beta1.Seed{})
	seed.Spec.Taints = nil
	kit.Must(t, c.Create(t.Context(), seed))
	forbidden(memberOf(t, c, g.Config()).Create(t.Context(), onSeed(shoot, "two", seed.Name)), "you need the right to update shoots/binding")
	bound := onSeed(shoot, shoot.Name, seed.Name)
	bound.ResourceVersion = shoot.ResourceVersion
	kit.Must(t, c.SubResource("binding").Update(t.Context(), bound))
	if networking := bound.Spec.Networking; networking.Pods == nil || *networking.Pods != *seed.Spec.Networks.ShootDefaults.Pods || networking.Services == nil {
		t.Errorf("the Shoot has the networks %+v, not the defaults of its Seed", networking)
	}

	bound.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Restore", State: "Processing", LastUpdateTime: metav1.Now(), Description: "moves"}
	bound.Status.TechnicalID, bound.Status.UID = "shoot--ruled--one", bound.UID
	kit.Must(t, c.Status().Update(t.Context(), bound))
	confirmDeletion(bound)
	kit.Must(t, c.Update(t.Context(), bound))
	forbidden(c.Delete(t.Context(), bound), "moves to another Seed")

	// What the CloudProfile loses does not block what has nothing to do with it.
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(profile), profile))
	profile.Spec.MachineTypes[0].Usable = ptr(false)
	kit.Must(t, c.Update(t.Context(), profile))
	bound.Status.LastOperation.State = "Succeeded"
	kit.Must(t, c.Status().Update(t.Context(), bound))
	bound.Labels["a"], bound.Spec.Provider.Workers[0].Maximum = "b", 3
	kit.Must(t, c.Update(t.Context(), bound))
	kit.Must(t, c.Delete(t.Context(), bound))
}

// onSeed returns a Shoot with another name on a Seed.
func onSeed(shoot *gardencorev1beta1.Shoot, name, seed string) *gardencorev1beta1.Shoot {
	other := shoot.DeepCopy()
	other.Name, other.ResourceVersion, other.UID, other.Spec.SeedName = name, "", shoot.UID, &seed
	return other
}

// memberOf returns a client of a user who may create Shoots, but not bind them.
func memberOf(t *testing.T, c client.Client, config *rest.Config) client.Client {
	t.Helper()
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{APIGroups: []string{gardencorev1beta1.GroupName}, Resources: []string{"shoots"}, Verbs: []string{"*"}}}}
	role.Name = "member-of-ruled"
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "member"}},
	}
	binding.Name = role.Name
	kit.Must(t, c.Create(t.Context(), role))
	kit.Must(t, c.Create(t.Context(), binding))
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "member"}
	member, err := client.New(config, client.Options{Scheme: c.Scheme()})
	kit.Must(t, err)
	kit.EventuallyTrue(t, "the member may list Shoots", func() bool {
		return member.List(t.Context(), &gardencorev1beta1.ShootList{}, client.InNamespace("garden-ruled")) == nil
	})
	return member
}

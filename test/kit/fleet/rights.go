package fleet

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	controllermanagerv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/certificatesigningrequest"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/gardenletrights"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/seed"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/audit"
)

// GrantRights runs the controllers of the garden's controller-manager without which a gardenlet cannot work: those that approve its
// certificates, grant rights by name, and create the namespace of its Seed with copies of Secrets. They stop at the end of the test.
func GrantRights(tb testing.TB, garden *rest.Config, of client.Client) {
	tb.Helper()
	options := kit.ManagerOptions(of.Scheme())
	RunControllers(tb, garden, options, certificatesigningrequest.Controller(), gardenletrights.Controller(), seed.Controller())
}

// RunControllers runs controllers of the controller-manager with its default configuration until the end of the test.
func RunControllers(tb testing.TB, garden *rest.Config, options manager.Options, controllers ...controller.Controller) {
	tb.Helper()
	var err error
	options.Cache.ByObject, err = controller.Set(controllers).Cache()
	kit.Must(tb, err)
	mgr, err := manager.New(garden, options)
	kit.Must(tb, err)
	settings := &controllermanagerv1alpha1.ControllerManagerConfiguration{}
	controllermanagerv1alpha1.SetDefaults(settings)
	kit.Must(tb, controller.Set(controllers).Add(tb.Context(), mgr, controller.Deps{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("controller-manager"),
		Clock: clock.RealClock{}, Config: &settings.Controllers,
	}))
	kit.Run(tb, mgr)
}

// CheckRights compares the requests of the gardenlet of a Seed to the garden with its rights there. A request that was refused
// fails the test, unless it was permitted later, when the controller-manager had granted the right. So does a right that no
// request used, unless unused has a reason for it.
func CheckRights(tb testing.TB, garden client.Client, requests []auditv1.Event, seed string, unused map[string]string) {
	tb.Helper()
	CheckRightsOf(tb, garden, requests, unused, constants.PrefixSeedUser+seed, constants.SeedsGroup)
}

// CheckRightsOf is CheckRights for the program that has the rights of the named subjects.
func CheckRightsOf(tb testing.TB, garden client.Client, requests []auditv1.Event, unused map[string]string, subjects ...string) {
	tb.Helper()
	used, refused := map[string]bool{}, map[string]string{}
	for _, event := range requests {
		if event.ObjectRef == nil {
			continue
		}
		to := audit.Describe(event) + " " + event.ObjectRef.Namespace + "/" + event.ObjectRef.Name
		if audit.IsForbidden(event) {
			refused[to] = event.RequestURI + ": " + event.ResponseStatus.Message
			continue
		}
		used[audit.Describe(event)] = true
		delete(refused, to)
		if watched, is := strings.CutPrefix(to, "watch "); is { // streamed watches need no list
			delete(refused, "list "+watched)
		}
	}
	for to, why := range refused {
		tb.Errorf("the program lacks a right: %s: %s", to, why)
	}
	if len(used) == 0 {
		tb.Fatal("the audit log has no request of the program")
	}
	granted := rightsOf(tb, garden, subjects)
	for _, right := range slices.Sorted(maps.Keys(granted)) {
		// Streamed watches need no list.
		verb, what, _ := strings.Cut(right, " ")
		is := used[right] || verb == "list" && used["watch "+what]
		if !is && unused[right] == "" {
			tb.Errorf("the program has a right that it does not use: %s", right)
		}
	}
	for right := range unused {
		if !granted[right] {
			tb.Errorf("this right is not granted: %s", right)
		}
	}
}

// rightsOf returns the rights of the named subjects in the garden, as audit.Describe describes requests.
func rightsOf(tb testing.TB, garden client.Client, names []string) map[string]bool {
	tb.Helper()
	found := map[string]bool{}
	add := func(subjects []rbacv1.Subject, rules []rbacv1.PolicyRule) {
		if !slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool {
			return slices.Contains(names, subject.Name)
		}) {
			return
		}
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, group := range rule.APIGroups {
					for _, verb := range rule.Verbs {
						found[strings.TrimSuffix(verb+" "+resource+"."+group, ".")] = true
					}
				}
			}
		}
	}
	var clusterBindings rbacv1.ClusterRoleBindingList
	var bindings rbacv1.RoleBindingList
	kit.Must(tb, garden.List(tb.Context(), &clusterBindings))
	kit.Must(tb, garden.List(tb.Context(), &bindings))
	for _, binding := range clusterBindings.Items {
		role := &rbacv1.ClusterRole{}
		if garden.Get(tb.Context(), client.ObjectKey{Name: binding.RoleRef.Name}, role) == nil {
			add(binding.Subjects, role.Rules)
		}
	}
	if slices.Contains(names, constants.SeedsGroup) { // bound in the namespace of a Seed, as long as the Seed exists
		role := &rbacv1.ClusterRole{}
		if garden.Get(tb.Context(), client.ObjectKey{Name: "gardener.cloud:system:seed-namespace"}, role) == nil {
			add([]rbacv1.Subject{{Name: constants.SeedsGroup}}, role.Rules)
		}
	}
	for _, binding := range bindings.Items {
		role, all := &rbacv1.Role{}, &rbacv1.ClusterRole{}
		if binding.RoleRef.Kind == "ClusterRole" && garden.Get(tb.Context(), client.ObjectKey{Name: binding.RoleRef.Name}, all) == nil {
			add(binding.Subjects, all.Rules)
		} else if garden.Get(tb.Context(), client.ObjectKey{Namespace: binding.Namespace, Name: binding.RoleRef.Name}, role) == nil {
			add(binding.Subjects, role.Rules)
		}
	}
	return found
}

package garden

import (
	"context"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	operatorcontroller "github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/rights"
)

// Controller is the entry of the flow in the table of the operator's controllers.
func Controller() operatorcontroller.Controller {
	const (
		kindSecrets, own = "secrets", "gardener-resource-manager"
		rbac, admission  = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
	)
	return operatorcontroller.Controller{
		Name: "garden", When: operatorcontroller.Always,
		Add: func(_ context.Context, deps operatorcontroller.Deps) error {
			return AddToManager(deps.Manager, Options{ //nolint:contextcheck // the manager gives controllers their context
				Namespace: deps.Namespace, Config: deps.Config, Identity: deps.Identity, Clock: deps.Clock, Version: deps.Version, Address: deps.Address,
			})
		},
		Rights: []rights.Right{
			rights.May("the Garden", operatorv1alpha1.GroupName, []string{"gardens"}, "get", "list", "watch", "patch"),
			rights.May("the status of the Garden", operatorv1alpha1.GroupName, []string{"gardens/status"}, "patch"),
			rights.May("the bundles of the flow", "resources.gardener.cloud", []string{"managedresources"}, "get", "list", "watch", "create", "patch", "delete"),
			rights.May("manifests, certificates and keys", "", []string{kindSecrets}, "get", "list", "watch", "create", "update", "patch", "delete").InNamespace(),
			rights.May("what the Garden refers to, and what a former resource-manager used", "", []string{"configmaps"}, rights.Reads()...).InNamespace(),
			rights.May("files of components that no resource-manager collects any more", "", []string{"configmaps"}, "delete").InNamespace(),
			rights.May("addresses, the number of nodes, and which Secrets are in use", "", []string{"services", "nodes", "pods"}, rights.Reads()...),
			rights.May("which kinds exist", "apiextensions.k8s.io", []string{"customresourcedefinitions"}, rights.Reads()...),
			rights.May("the health of the resource-manager", "apps", []string{"deployments"}, rights.Reads()...),
			rights.May("the health of the resource-manager", "coordination.k8s.io", []string{"leases"}, rights.Reads()...),
			rights.May("Events", "events.k8s.io", []string{"events"}, "create", "patch"),
			rights.May("guarded objects whose ManagedResource was deleted by hand", "druid.gardener.cloud", []string{"etcds"}, "patch"),
			rights.May("guarded objects whose ManagedResource was deleted by hand", "extensions.gardener.cloud", []string{"dnsrecords"}, "patch"),
			rights.May("the credentials of backups, which its extension generates", "extensions.gardener.cloud", []string{"backupbuckets"}, "get"),
			ofManager(rbac, "clusterroles", "gardener-resource-manager-seed", "get", "patch", "delete", "escalate", "bind"),
			ofManager(rbac, "clusterrolebindings", "gardener-resource-manager-seed", "get", "patch", "delete"),
			rights.May("the first resource-manager: a creation cannot be restricted to a name", rbac, []string{"clusterroles", "clusterrolebindings"}, "create"),
			ofManager(admission, "mutatingwebhookconfigurations", own, "get", "patch", "delete"),
			ofManager(admission, "validatingwebhookconfigurations", own, "get", "patch", "delete"),
			rights.May("the first resource-manager", admission, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, "create"),
			rights.May("the first resource-manager", "", []string{"serviceaccounts", "services"}, "create", "get"),
		},
	}
}

// ofManager returns a right for one object of the resource-manager.
func ofManager(group, resource, name string, verbs ...string) rights.Right {
	right := rights.May("the first resource-manager", group, []string{resource}, verbs...)
	right.Rule.ResourceNames = []string{name}
	return right
}

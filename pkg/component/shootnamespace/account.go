package shootnamespace

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/component/machinecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/rbac"
)

// Account is the ServiceAccount of the namespace as which the seed's resource-manager applies the ManagedResources in it.
const Account = "managedresource-reconciler"

// Access returns the account of the namespace with its permissions. workers is set if the Shoot has workers, and restores while objects of
// extensions are created with their state, which is in their status.
func Access(namespace string, workers, restores bool) []client.Object {
	account, given := parts.Account{Namespace: namespace, Name: Account}, rules(workers)
	if restores {
		var statuses []string
		for _, kind := range extensionKinds(workers) {
			statuses = append(statuses, kind+"/status")
		}
		given = append(given, parts.Rule("extensions.gardener.cloud", statuses, "patch"))
	}
	return append([]client.Object{parts.ServiceAccount(namespace, Account, nil)}, parts.Rights(namespace, Account, nil, given, account)...)
}

// extensionKinds returns the kinds of the extension objects in the namespace.
func extensionKinds(workers bool) []string {
	kinds := []string{"dnsrecords", "extensions"}
	if workers {
		kinds = append(kinds, "containerruntimes", "controlplanes", "infrastructures", "networks", "operatingsystemconfigs", "workers")
	}
	return kinds
}

// rules are the permissions of the account: to manage the objects that the flow, the etcd operator and extensions deploy
// in the namespace, and what their Roles grant. No rule allows binding or escalation, so Roles cannot grant more. The
// policies in the package seedsystem restrict what the account may do with Pods and Services.
func rules(workers bool) []rbacv1.PolicyRule {
	manage, read := rbac.ForObjects(), []string{"get", "list", "watch"}
	all := []rbacv1.PolicyRule{
		parts.Rule("", []string{"configmaps", "secrets", "serviceaccounts", "services"}, manage...),
		parts.Rule("apps", []string{"deployments", "statefulsets"}, manage...),
		parts.Rule("autoscaling", []string{"horizontalpodautoscalers"}, manage...),
		parts.Rule("autoscaling.k8s.io", []string{"verticalpodautoscalers"}, manage...),
		parts.Rule("networking.k8s.io", []string{"networkpolicies"}, manage...),
		parts.Rule("networking.istio.io", []string{"destinationrules", "gateways", "virtualservices"}, manage...),
		parts.Rule("gateway.networking.k8s.io", []string{"tlsroutes"}, manage...),
		parts.Rule("policy", []string{"poddisruptionbudgets"}, manage...),
		parts.Rule("rbac.authorization.k8s.io", []string{"rolebindings", "roles"}, manage...),
		parts.Rule("monitoring.coreos.com", []string{"podmonitors", "prometheusrules", "scrapeconfigs", "servicemonitors"}, manage...),
		parts.Rule("extensions.gardener.cloud", extensionKinds(workers), manage...),
		parts.Rule("batch", []string{"jobs"}, manage...),
		parts.Rule("druid.gardener.cloud", []string{"etcdcopybackupstasks", "etcds"}, manage...),
		// Objects of an Etcd, and Jobs of a copy, have an owner reference that blocks its deletion.
		parts.Rule("druid.gardener.cloud", []string{"etcdcopybackupstasks/finalizers", "etcds/finalizers"}, "update"),

		// Roles grant this to the shoot's resource-manager, members of etcd, and controllers of extensions.
		parts.Rule(resourcesv1alpha1.GroupName, []string{"managedresources"}, append(read, "patch")...),
		parts.Rule(resourcesv1alpha1.GroupName, []string{"managedresources/status"}, "patch"),
		parts.Rule("", []string{"pods"}, read...),
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		parts.Rule("coordination.k8s.io", []string{"leases"}, append(read, "create", "update", "patch")...),
	}
	if workers { // the shoot's resource-manager must know which machines exist
		all = append(all, parts.Rule("machine.sapcloud.io", []string{"machines"}, read...))
		// Roles grant this to machine-controller-manager and cluster-autoscaler.
		all = append(all, parts.Rule("machine.sapcloud.io", machinecontrollermanager.MachineResources(), append(manage, "update", "deletecollection")...),
			parts.Rule("", []string{"configmaps", "secrets"}, "update"))
	}
	return all
}

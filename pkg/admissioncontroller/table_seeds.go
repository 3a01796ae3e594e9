package admissioncontroller

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// Conditions on the requester. The webhooks that restrict gardenlets are called for no one else: an API server that called them for
// system accounts could not create the Secrets and ServiceAccounts that the admission controller itself needs to start.
const (
	programsOfSeeds = `'gardener.cloud:system:seeds' in request.userInfo.groups || ` +
		`request.userInfo.groups.exists(g, g.startsWith('system:serviceaccounts:seed-'))`
	programsOfShoots = `'gardener.cloud:system:shoots' in request.userInfo.groups || ` +
		`request.userInfo.username.contains(':extension-shoot--') && ` +
		`request.userInfo.groups.exists(g, g == 'system:serviceaccounts:garden' || g.startsWith('system:serviceaccounts:garden-'))`
)

const (
	coreGroup           = "core.gardener.cloud"
	seedManagementGroup = "seedmanagement.gardener.cloud"
)

// authorizes returns an authorization webhook. API servers know it from their configuration file.
func authorizes(name, path string, handler http.Handler) webhookserver.Webhook {
	return webhookserver.Webhook{Name: name, Path: path, Kind: webhookserver.Authorizing, Handler: handler, Reads: graph.Kinds()}
}

// restricts returns a webhook that restricts the writes of the requesters that a condition selects.
func restricts(name, path string, handler admission.Handler, condition string, rules []admissionregistrationv1.RuleWithOperations) webhookserver.Webhook {
	row := validates(name, path, handler, nil, nil, rules...)
	row.Calls.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "requester", Expression: condition}}
	return row
}

// writesOfSeeds are the writes by programs of Seeds that are restricted.
func writesOfSeeds() []admissionregistrationv1.RuleWithOperations {
	return append([]admissionregistrationv1.RuleWithOperations{
		rule(coreGroup, "v1beta1", "backupbuckets", created, deleted),
		rule(coreGroup, "v1beta1", "seeds", created, updated, deleted),
		rule(seedManagementGroup, "v1alpha1", "gardenlets", created, updated),
		rule(seedManagementGroup, "v1alpha1", "managedseeds", updated),
		rule("operations.gardener.cloud", "v1alpha1", "bastions", created),
		rule("rbac.authorization.k8s.io", "v1", "clusterrolebindings", created),
	}, createdByAll()...)
}

// writesOfShoots are the writes by programs of self-hosted Shoots that are restricted.
func writesOfShoots() []admissionregistrationv1.RuleWithOperations {
	return append([]admissionregistrationv1.RuleWithOperations{
		rule(coreGroup, "v1beta1", "backupbuckets", created),
		rule(coreGroup, "v1beta1", "projects", created),
		rule(coreGroup, "v1beta1", "shoots", created),
		rule(seedManagementGroup, "v1alpha1", "gardenlets", created),
	}, createdByAll()...)
}

// createdByAll are the creations by programs of both that are restricted.
func createdByAll() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{
		rule("", "v1", "configmaps", created), rule("", "v1", "secrets", created), rule("", "v1", "serviceaccounts", created),
		rule("certificates.k8s.io", "v1", "certificatesigningrequests", created),
		rule("coordination.k8s.io", "v1", "leases", created),
		rule(coreGroup, "v1beta1", "backupentries", created),
		rule(coreGroup, "v1beta1", "internalsecrets", created),
		rule(coreGroup, "v1beta1", "shootstates", created),
	}
}

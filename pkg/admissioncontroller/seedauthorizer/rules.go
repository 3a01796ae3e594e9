package seedauthorizer

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/requester"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// rule is what requesters may do with the objects of a resource.
type rule struct {
	kind       graph.Kind
	namespaced bool
	// always are the verbs that are permitted for each object. Admission webhooks restrict creations.
	always string
	// reachable are the verbs that are permitted for objects with a path to the requester's Seed or Shoot.
	reachable string
	// subresources are those for which the verbs are permitted, too.
	subresources string
	// namespace is the only namespace in which requests are permitted, if it is set.
	namespace func(requester.Requester) string
	// selectors returns the selectors that together permit a list or a watch without a name.
	selectors func(requester.Requester) []selector
	// special permits further requests.
	special func(r requester.Requester, request attributes) bool
	// extension replaces the rule for extensions.
	extension *rule
}

// selector is a requirement of a list or watch.
type selector struct {
	field      bool
	key, value string
}

const (
	reads  = "get list watch"
	every  = "create delete deletecollection get list patch update watch"
	public = constants.SystemPublicNamespace
)

func core(resource string) schema.GroupResource {
	return schema.GroupResource{Group: corev1beta1.SchemeGroupVersion.Group, Resource: resource}
}

func inGroup(group, resource string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: resource}
}

var (
	managedSeeds       = inGroup(seedmanagementv1alpha1.SchemeGroupVersion.Group, "managedseeds")
	gardenlets         = inGroup(seedmanagementv1alpha1.SchemeGroupVersion.Group, "gardenlets")
	bastions           = inGroup(operationsv1alpha1.SchemeGroupVersion.Group, "bastions")
	workloadIdentities = inGroup(securityv1alpha1.SchemeGroupVersion.Group, "workloadidentities")
	credentials        = inGroup(securityv1alpha1.SchemeGroupVersion.Group, "credentialsbindings")
	requests           = inGroup("certificates.k8s.io", "certificatesigningrequests")
	leases             = inGroup("coordination.k8s.io", "leases")
	clusterBindings    = inGroup("rbac.authorization.k8s.io", "clusterrolebindings")
	tokenReviews       = inGroup("authentication.k8s.io", "tokenreviews")
)

// seedRules are the rules for programs of Seeds. They are those of Gardener, with these differences: a list or a watch of one Secret by
// its name is like a get; a create of WorkloadIdentities is permitted for tokens only; tokens can be reviewed; and BackupBuckets and
// BackupEntries are listed with a selector. Entries have labels for the Seed that has them and for the one that takes them over.
var seedRules = map[schema.GroupResource]rule{
	core("backupbuckets"): {
		kind: graph.BackupBucket, always: "create", reachable: reads + " update patch delete", subresources: "status finalizers", selectors: fieldOfSeed("spec.seedName"),
	},
	core("backupentries"): {
		kind: graph.BackupEntry, namespaced: true, always: "create", reachable: reads + " update patch delete", subresources: "status",
		selectors: labelOfSeed, special: entriesOfSeed,
	},
	bastions: {
		kind: graph.Bastion, namespaced: true, always: "create", reachable: reads + " update patch", subresources: "status", selectors: fieldOfSeed("spec.seedName"),
	},
	requests: {
		kind: graph.CertificateSigningRequest, always: "create", reachable: reads, subresources: "seedclient",
		extension: &rule{kind: graph.CertificateSigningRequest, reachable: reads},
	},
	core("cloudprofiles"):           {kind: graph.CloudProfile, reachable: reads},
	core("namespacedcloudprofiles"): {kind: graph.NamespacedCloudProfile, namespaced: true, reachable: reads},
	core("controllerdeployments"):   {kind: graph.ControllerDeployment, reachable: reads},
	core("secretbindings"):          {kind: graph.SecretBinding, namespaced: true, reachable: reads},
	credentials:                     {kind: graph.CredentialsBinding, namespaced: true, reachable: reads},
	core("exposureclasses"):         {kind: graph.ExposureClass, reachable: reads},
	inGroup("", "namespaces"):       {kind: graph.Namespace, reachable: reads},
	core("projects"):                {kind: graph.Project, reachable: reads},
	clusterBindings: {
		kind: graph.ClusterRoleBinding, always: "create", reachable: "get patch update", special: ownBootstrapBinding,
		extension: &rule{kind: graph.ClusterRoleBinding, reachable: "get"},
	},
	inGroup("", "configmaps"): {
		kind: graph.ConfigMap, namespaced: true, always: "create", reachable: reads + " update patch delete", special: publicConfigMap,
	},
	core("controllerinstallations"): {
		kind: graph.ControllerInstallation, reachable: reads + " update patch", subresources: "status", selectors: fieldOfSeed("spec.seedRef.name"),
	},
	core("controllerregistrations"):    {kind: graph.ControllerRegistration, always: reads},
	inGroup("", "events"):              {always: "create patch", namespaced: true},
	inGroup("events.k8s.io", "events"): {always: "create patch", namespaced: true},
	gardenlets: {
		kind: graph.Gardenlet, namespaced: true, always: "create", reachable: reads + " update patch", subresources: "status",
		namespace: inGarden, selectors: fieldOfSeed("metadata.name"),
	},
	core("internalsecrets"): {kind: graph.InternalSecret, namespaced: true, always: "create", reachable: reads + " update patch delete"},
	leases: {
		kind: graph.Lease, namespaced: true, always: "create", reachable: reads + " update patch",
		extension: &rule{kind: graph.Lease, namespaced: true, special: ownNamespace(every)},
	},
	managedSeeds: {kind: graph.ManagedSeed, namespaced: true, reachable: reads + " update patch", subresources: "status", selectors: labelOfSeed},
	inGroup("", "secrets"): {
		kind: graph.Secret, namespaced: true, always: "create", reachable: reads + " update patch delete", special: secretsOfSeed,
		extension: &rule{kind: graph.Secret, namespaced: true, reachable: reads, special: ownNamespace(reads)},
	},
	workloadIdentities: {kind: graph.WorkloadIdentity, namespaced: true, reachable: reads + " patch create", subresources: "token"},
	core("seeds"):      {kind: graph.Seed, always: "create", reachable: reads + " update patch delete", subresources: "status", selectors: labelOfSeed},
	inGroup("", "serviceaccounts"): {
		kind: graph.ServiceAccount, namespaced: true, always: "create", reachable: "get patch update", special: accountsOfSeed,
		extension: &rule{kind: graph.ServiceAccount, namespaced: true, reachable: "get", special: ownNamespace("get")},
	},
	core("shoots"): {
		kind: graph.Shoot, namespaced: true, reachable: reads + " update patch", subresources: "status finalizers", selectors: labelOfSeed, special: shootOfSeed,
	},
	core("shootstates"): {kind: graph.ShootState, namespaced: true, always: "create", reachable: reads + " update patch delete"},
	tokenReviews:        {always: "create"},
}

func fieldOfSeed(key string) func(requester.Requester) []selector {
	return func(r requester.Requester) []selector { return []selector{{field: true, key: key, value: r.Seed}} }
}

func labelOfSeed(r requester.Requester) []selector {
	return []selector{{key: constants.LabelPrefixSeedName + r.Seed, value: "true"}}
}

func inGarden(requester.Requester) string { return constants.GardenNamespace }

// ownNamespace permits verbs in the namespace of the requester's Seed.
func ownNamespace(verbs string) func(requester.Requester, attributes) bool {
	return func(r requester.Requester, request attributes) bool {
		return request.namespace == r.SeedNamespace() && request.subresource == "" && has(verbs, request.verb)
	}
}

// secretsOfSeed permits everything in the namespace of the Seed, and the deletion of the own bootstrap token.
func secretsOfSeed(r requester.Requester, request attributes) bool {
	own := graph.TokenSecret(constants.GardenNamespace, r.Seed)
	return ownNamespace(every)(r, request) ||
		request.is("delete", "kube-system", own) && request.subresource == ""
}

// accountsOfSeed permits everything in the namespace of the Seed, with tokens, and the deletion of the own bootstrap account.
func accountsOfSeed(r requester.Requester, request attributes) bool {
	if request.namespace == r.SeedNamespace() {
		return request.subresource == "" && has(every, request.verb) || request.subresource == "token" && request.verb == "create"
	}
	return request.subresource == "" && request.is("delete", constants.GardenNamespace, constants.PrefixBootstrapServiceAccount+r.Seed)
}

func ownBootstrapBinding(r requester.Requester, request attributes) bool {
	account := constants.PrefixBootstrapServiceAccount + r.Seed
	return request.subresource == "" && request.is("delete", "", graph.BootstrapBinding(constants.GardenNamespace, account))
}

// publicConfigMap permits to read the versions and the CA of the garden.
func publicConfigMap(_ requester.Requester, request attributes) bool {
	return request.subresource == "" && (request.is("get", public, constants.GardenerInfoName) || request.is("get", public, "kube-root-ca.crt"))
}

// entriesOfSeed permits the selector of older gardenlets, which restart while a newer version is rolled out to other Seeds.
func entriesOfSeed(r requester.Requester, request attributes) bool {
	return request.subresource == "" && (request.verb == "list" || request.verb == "watch") && selects(fieldOfSeed("spec.seedName")(r), request)
}

// shootOfSeed permits to read the Shoot that is the cluster of a managed Seed.
func shootOfSeed(r requester.Requester, request attributes) bool {
	return request.subresource == "" && request.is("get", constants.GardenNamespace, r.Seed)
}

// has reports whether a list of words has a word.
func has(words, word string) bool {
	for one := range strings.FieldsSeq(words) {
		if one == word {
			return true
		}
	}
	return false
}

package seedauthorizer

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/requester"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
)

// shootRules are the rules for gardenlets and extensions of self-hosted Shoots.
var shootRules = map[schema.GroupResource]rule{
	core("backupbuckets"): {
		kind: graph.BackupBucket, always: "create", reachable: reads + " update patch delete", subresources: "status finalizers", selectors: ofShootRef,
	},
	core("backupentries"): {
		kind: graph.BackupEntry, namespaced: true, always: "create", reachable: reads + " update patch delete", subresources: "status", selectors: ofShootRef,
	},
	bastions: {
		kind: graph.Bastion, namespaced: true, reachable: reads + " update patch", subresources: "status", namespace: ofShoot, selectors: fieldOfShoot("spec.shootRef.name", ""),
	},
	requests: {
		kind: graph.CertificateSigningRequest, always: "create", reachable: reads, subresources: "shootclient",
		extension: &rule{kind: graph.CertificateSigningRequest, reachable: reads},
	},
	inGroup("", "configmaps"):       {kind: graph.ConfigMap, namespaced: true, always: "create", reachable: reads + " update patch delete"},
	core("controllerdeployments"):   {kind: graph.ControllerDeployment, reachable: reads},
	inGroup("", "namespaces"):       {kind: graph.Namespace, reachable: reads},
	core("projects"):                {kind: graph.Project, reachable: reads},
	core("controllerinstallations"): {kind: graph.ControllerInstallation, reachable: reads + " update patch", subresources: "status", selectors: ofShootRef},
	core("controllerregistrations"): {kind: graph.ControllerRegistration, always: reads},
	inGroup("", "events"):           {namespaced: true, always: "create patch"},
	inGroup("events.k8s.io", "events"): {
		namespaced: true, always: "create patch",
	},
	gardenlets: {
		kind: graph.Gardenlet, namespaced: true, always: "create", reachable: reads + " update patch", subresources: "status", namespace: ofShoot,
		selectors: fieldOfShoot("metadata.name", graph.PrefixSelfHosted),
	},
	core("internalsecrets"): {kind: graph.InternalSecret, namespaced: true, always: "create", reachable: reads + " update patch delete"},
	leases: {
		kind: graph.Lease, namespaced: true, always: "create", reachable: reads + " update patch",
		extension: &rule{kind: graph.Lease, namespaced: true, special: leasesOfExtension},
	},
	managedSeeds: {
		kind: graph.ManagedSeed, namespaced: true, reachable: reads + " update patch", subresources: "status", namespace: ofShoot,
		selectors: fieldOfShoot("spec.shoot.name", ""),
	},
	inGroup("", "secrets"): {
		kind: graph.Secret, namespaced: true, always: "create", reachable: reads + " update patch delete", special: secretsOfShoot,
		extension: &rule{kind: graph.Secret, namespaced: true, reachable: reads},
	},
	core("seeds"): {kind: graph.Seed, reachable: "get delete", special: seedOfShoot},
	inGroup("", "serviceaccounts"): {
		kind: graph.ServiceAccount, namespaced: true, always: "create", reachable: "get patch update", special: accountsOfShoot,
		extension: &rule{kind: graph.ServiceAccount, namespaced: true, reachable: "get"},
	},
	core("shoots"):      {kind: graph.Shoot, namespaced: true, reachable: reads + " update patch", subresources: "status", namespace: ofShoot},
	core("shootstates"): {kind: graph.ShootState, namespaced: true, always: "create", reachable: reads + " patch"},
	workloadIdentities:  {kind: graph.WorkloadIdentity, namespaced: true, reachable: reads + " patch create", subresources: "token"},
}

// gardenadmRules are the rules for the program that sets up a self-hosted Shoot.
var gardenadmRules = map[schema.GroupResource]rule{
	core("cloudprofiles"):           {always: "get"},
	core("controllerdeployments"):   {always: "get"},
	core("controllerregistrations"): {always: "get"},
	core("projects"):                {always: "create"},
	inGroup("", "configmaps"):       {always: "create", namespaced: true, namespace: ofShoot},
	inGroup("", "secrets"):          {always: "create", namespaced: true, namespace: ofShoot},
	core("secretbindings"):          {always: "create", namespaced: true, namespace: ofShoot},
	credentials:                     {always: "create", namespaced: true, namespace: ofShoot},
	workloadIdentities:              {always: "create", namespaced: true, namespace: ofShoot},
	core("shoots"):                  {special: shootsOfGardenadm, namespaced: true, namespace: ofShoot},
}

func ofShoot(r requester.Requester) string { return r.Shoot.Namespace }

// ofShootRef are the selectors for objects that refer to the Shoot. Both are needed: Shoots of other namespaces may have the same name.
func ofShootRef(r requester.Requester) []selector {
	return []selector{
		{field: true, key: "spec.shootRef.name", value: r.Shoot.Name}, {field: true, key: "spec.shootRef.namespace", value: r.Shoot.Namespace},
	}
}

func fieldOfShoot(key, prefix string) func(requester.Requester) []selector {
	return func(r requester.Requester) []selector {
		return []selector{{field: true, key: key, value: prefix + r.Shoot.Name}}
	}
}

// leasesOfExtension permits the Leases of extensions of the Shoot.
func leasesOfExtension(r requester.Requester, request attributes) bool {
	return request.namespace == r.Shoot.Namespace && request.subresource == "" && has(every, request.verb) &&
		(strings.HasPrefix(request.name, r.Shoot.Name+"--") || request.name == "" && request.verb == "create")
}

// secretsOfShoot permits everything with the own bootstrap token.
func secretsOfShoot(r requester.Requester, request attributes) bool {
	return request.subresource == "" && request.namespace == "kube-system" &&
		request.name == graph.TokenSecret(r.Shoot.Namespace, r.Shoot.Name) && has(every, request.verb)
}

// seedOfShoot permits to read the Seed that the Shoot may become.
func seedOfShoot(r requester.Requester, request attributes) bool {
	return request.subresource == "" && request.name == r.Shoot.Name && has(reads, request.verb)
}

// accountsOfShoot permits everything with the ServiceAccounts of the Shoot's extensions.
func accountsOfShoot(r requester.Requester, request attributes) bool {
	return request.namespace == r.Shoot.Namespace && strings.HasPrefix(request.name, "extension-shoot--"+r.Shoot.Name+"--") &&
		(request.subresource == "" && has(every, request.verb) || request.subresource == "token" && request.verb == "create")
}

func shootsOfGardenadm(r requester.Requester, request attributes) bool {
	if request.subresource == "status" {
		return request.is("patch", r.Shoot.Namespace, r.Shoot.Name)
	}
	return request.subresource == "" && has("create patch mark-self-hosted", request.verb)
}

package gardenletrights

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// use is what a gardenlet does with an object.
type use int

const (
	// readSecret, readConfigMap and readIdentity read an object. requestToken requests tokens of a WorkloadIdentity.
	readSecret use = iota
	readConfigMap
	readIdentity
	requestToken
	// protectSecret and protectIdentity patch the finalizers of the credentials of a BackupBucket.
	protectSecret
	protectIdentity
	// generateSecret maintains the Secret with the credentials that the extension of a BackupBucket generates.
	generateSecret
	// publishCA, shareClientCA and keepState maintain the objects of a Shoot in the namespace of its project.
	publishCA
	shareClientCA
	keepState
	// publishIssuer maintains the documents of the managed issuer of a Shoot. A watch shows that they were deleted or changed.
	publishIssuer
	// readSecretBinding and readCredentialsBinding read which credentials for the infrastructure a Shoot has.
	readSecretBinding
	readCredentialsBinding
)

// uses are all uses.
var uses = slices.Sorted(maps.Keys(rights))

// right is the right for a use. The right to create an object has no names in RBAC: gardenlet's chart has a policy that
// restricts it to the names that the gardenlet may also patch.
type right struct {
	group, resource string
	verbs           []string
	create          bool
}

// watching are the verbs for a watch of a single object, with which gardenlet reads all objects to which others refer.
var watching = []string{"list", "watch"}

// copying are the verbs for a copy of a certificate authority. A watch shows that it was deleted or changed.
var copying = []string{"get", "list", "watch", "patch"}

// rights are the rights by use.
var rights = map[use]right{
	readSecret:      {resource: "secrets", verbs: watching},
	readConfigMap:   {resource: "configmaps", verbs: watching},
	readIdentity:    {group: securityv1alpha1.GroupName, resource: "workloadidentities", verbs: watching},
	requestToken:    {group: securityv1alpha1.GroupName, resource: "workloadidentities/token", verbs: []string{"create"}},
	protectSecret:   {resource: "secrets", verbs: []string{"patch"}},
	protectIdentity: {group: securityv1alpha1.GroupName, resource: "workloadidentities", verbs: []string{"patch"}},
	generateSecret:  {resource: "secrets", verbs: slices.Concat(watching, []string{"patch", "delete"}), create: true},
	publishCA:       {resource: "configmaps", verbs: copying, create: true},
	shareClientCA:   {group: corev1beta1.GroupName, resource: "internalsecrets", verbs: copying, create: true},
	keepState: {
		group: corev1beta1.GroupName, resource: "shootstates", verbs: slices.Concat([]string{"get"}, watching, []string{"patch", "delete"}), create: true,
	},
	publishIssuer:          {resource: "secrets", verbs: slices.Concat(watching, []string{"patch", "delete"}), create: true},
	readSecretBinding:      {group: corev1beta1.GroupName, resource: "secretbindings", verbs: watching},
	readCredentialsBinding: {group: securityv1alpha1.GroupName, resource: "credentialsbindings", verbs: watching},
}

// Grants are the names of the objects in one namespace that a gardenlet uses.
type Grants map[use]sets.Set[string]

func (g Grants) add(to use, name string) {
	if name == "" {
		return
	}
	if g[to] == nil {
		g[to] = sets.New[string]()
	}
	g[to].Insert(name)
}

// refer adds the rights to read an object to which another one refers. It ignores kinds that gardenlet does not use.
func (g Grants) refer(apiVersion, kind, name string) {
	switch kindOf(apiVersion, kind) {
	case kindSecret:
		g.add(readSecret, name)
	case kindConfigMap:
		g.add(readConfigMap, name)
	case kindWorkloadIdentity:
		g.add(readIdentity, name)
		g.add(requestToken, name)
	}
}

// protect adds the rights to use an object as the credentials of a BackupBucket.
func (g Grants) protect(apiVersion, kind, name string) {
	g.refer(apiVersion, kind, name)
	switch kindOf(apiVersion, kind) {
	case kindSecret:
		g.add(protectSecret, name)
	case kindWorkloadIdentity:
		g.add(protectIdentity, name)
	}
}

// Rules returns the rules of the Role, in a stable order. Names also permit lists and watches of single objects by name.
func (g Grants) Rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, at := range uses {
		if g[at].Len() == 0 {
			continue
		}
		granted := rights[at]
		of := rbacv1.PolicyRule{APIGroups: []string{granted.group}, Resources: []string{granted.resource}}
		named, created := of, of
		named.ResourceNames, named.Verbs = sets.List(g[at]), granted.verbs
		rules = append(rules, named)
		if granted.create {
			created.Verbs = []string{"create"}
			rules = append(rules, created)
		}
	}
	return rules
}

// Kinds of objects to which others refer.
var (
	kindSecret           = corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
	kindConfigMap        = corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind()
	kindWorkloadIdentity = securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity").GroupKind()
)

func kindOf(apiVersion, kind string) schema.GroupKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
}

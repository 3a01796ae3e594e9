package fieldowner

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Policy determines the managers whose fields the resource-manager takes over, so that fields that are in no manifest
// are removed. All managers that it does not name are clients. The fields of clients are taken over, except labels,
// annotations and other fields that controllers may have to fill in.
type Policy struct {
	// Predecessors are managers that previously applied the same manifests. All their fields are taken over.
	Predecessors []string
	// Controllers are managers that keep their fields. One "*" in a name matches any text.
	Controllers []string
	// everything is set if fields that others usually keep are taken over, too.
	everything bool
}

// DefaultPolicy returns the policy with the field managers of gardener-resource-manager, kubectl apply, Helm, Flux and
// Argo CD as predecessors. Its controllers are those of Kubernetes, of cloud providers and of cert-manager, and the
// given ones.
func DefaultPolicy(controllers ...string) Policy {
	return Policy{
		Predecessors: []string{
			"gardener-resource-manager",
			// The managers of client-side kubectl apply, and of fields from before the first server-side apply (names of
			// Kubernetes).
			"kubectl-client-side-apply", "before-first-apply", "kubectl-last-applied", "kubectl",
			"helm", "helm-controller", "kustomize-controller", "flux-client-side-apply",
			"argocd-controller", "argocd-application-controller",
		},
		Controllers: append([]string{
			// The other controllers of the resource-manager.
			resourcesv1alpha1.FieldManager, resourcesv1alpha1.HealthFieldManager, resourcesv1alpha1.TokenFieldManager,
			resourcesv1alpha1.FieldManager + "-certificates", resourcesv1alpha1.FieldManager + "-token-invalidator",
			// Kubernetes. The endpoint controllers and the HorizontalPodAutoscaler are part of kube-controller-manager.
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "clusterrole-aggregation-controller",
			"*cloud-controller-manager", "cluster-autoscaler", "machine-controller-manager", "vpa-*",
			"csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter", "snapshot-controller",
			// cert-manager, which injects CA bundles and fills Secrets by update and by apply.
			"cainjector", "cert-manager-*",
		}, controllers...),
	}
}

// WithPredecessor returns the policy with an additional predecessor, unless the name is empty.
func (p Policy) WithPredecessor(manager string) Policy {
	if manager != "" {
		p.Predecessors = append(slices.Clip(p.Predecessors), manager)
	}
	return p
}

// WithoutControllers returns the policy with controllers treated as clients.
func (p Policy) WithoutControllers() Policy {
	p.Controllers = nil
	return p
}

// WithoutExemptions returns the policy with controllers treated as clients, and without fields that are exempt from
// taking over, except labels, annotations, finalizers, owner references and the status.
func (p Policy) WithoutExemptions() Policy {
	p.Controllers, p.everything = nil, true
	return p
}

// exempt returns the fields that managers in a role keep.
func (p Policy) exempt(role role) []Pattern {
	switch {
	case p.everything:
		return shared
	case role == roleClient:
		return slices.Concat(kept, keptOfClients)
	}
	return kept
}

// Predecessor reports whether all fields of a manager are taken over.
func (p Policy) Predecessor(manager string) bool {
	return slices.Contains(p.Predecessors, manager) || manager == Preserver
}

// Controller reports whether a manager keeps all its fields.
func (p Policy) Controller(manager string) bool {
	return slices.ContainsFunc(p.Controllers, func(name string) bool { return matchesName(name, manager) })
}

// matchesName reports whether a manager matches a name, in which one "*" matches any text.
func matchesName(name, manager string) bool {
	before, after, wild := strings.Cut(name, "*")
	if !wild {
		return name == manager
	}
	return len(manager) >= len(before)+len(after) && strings.HasPrefix(manager, before) && strings.HasSuffix(manager, after)
}

// role is the role of a manager in a policy.
type role int

const (
	// roleController is the role of managers that keep their fields, and of our own entry.
	roleController role = iota
	// roleClient is the role of managers whose fields are taken over, except those that any manager may add.
	roleClient
	// rolePredecessor is the role of managers whose fields are all taken over.
	rolePredecessor
)

// rolesOf returns the role of the manager of each entry. It is nil if all managers keep their fields.
func (p Policy) rolesOf(entries []metav1.ManagedFieldsEntry) []role {
	var roles []role
	for i, entry := range entries {
		found := p.roleOf(entry, entries)
		if found == roleController {
			continue
		}
		if roles == nil {
			roles = make([]role, len(entries))
		}
		roles[i] = found
	}
	return roles
}

func (p Policy) roleOf(entry metav1.ManagedFieldsEntry, entries []metav1.ManagedFieldsEntry) role {
	switch {
	case entry.Subresource != "" || entry.FieldsV1 == nil || isOwn(entry):
		return roleController
	case p.Predecessor(entry.Manager):
		return rolePredecessor
	case p.Controller(entry.Manager):
		return roleController
	case ownsOrigin(entry) && sharesOrigin(entries):
		return rolePredecessor
	}
	return roleClient
}

// FormerApplier returns the manager, other than the predecessors of the policy, that applied an object for a
// ManagedResource before our first apply. It is empty if there is none. The manager is recognized by its ownership of
// the origin annotation, because the binary of a predecessor may have any name.
func (p Policy) FormerApplier(entries []metav1.ManagedFieldsEntry) string {
	if own(entries) >= 0 {
		return ""
	}
	for _, entry := range entries {
		if entry.Subresource == "" && !p.Predecessor(entry.Manager) && !p.Controller(entry.Manager) && ownsOrigin(entry) {
			return entry.Manager
		}
	}
	return ""
}

// sharesOrigin reports whether we share the ownership of the origin annotation, or have not applied the object yet. If
// another manager is its sole owner, it has changed the annotation since our last apply.
func sharesOrigin(entries []metav1.ManagedFieldsEntry) bool {
	ours := own(entries)
	return ours < 0 || ownsOrigin(entries[ours])
}

// ownsOrigin reports whether the manager of an entry owns the origin annotation.
func ownsOrigin(entry metav1.ManagedFieldsEntry) bool {
	return entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(resourcesv1alpha1.AnnotationOrigin)) &&
		owns(entry.FieldsV1.GetRawBytes(), Pattern{"metadata", "annotations", resourcesv1alpha1.AnnotationOrigin})
}

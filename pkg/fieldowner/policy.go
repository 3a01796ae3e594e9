package fieldowner

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Policy says whose fields the resource-manager takes over, so that those which are in no manifest are removed. What its names leave out are
// clients: their fields are taken over except labels, annotations and what else controllers may have to fill in.
type Policy struct {
	// Predecessors are managers that applied the same manifests before. All their fields are taken over.
	Predecessors []string
	// Controllers are managers whose fields stay. One "*" in a name stands for any text.
	Controllers []string
}

// DefaultPolicy names the field managers of gardener-resource-manager, kubectl apply, Helm, Flux and Argo CD as predecessors, and controllers
// of Kubernetes, of cloud providers and of cert-manager, with the further names, as controllers.
func DefaultPolicy(controllers ...string) Policy {
	return Policy{
		Predecessors: []string{
			"gardener-resource-manager",
			// What kubectl apply wrote, and what existed before the first server-side apply (Kubernetes' own names).
			"kubectl-client-side-apply", "before-first-apply", "kubectl-last-applied", "kubectl",
			"helm", "helm-controller", "kustomize-controller", "flux-client-side-apply",
			"argocd-controller", "argocd-application-controller",
		},
		Controllers: append([]string{
			// The resource-manager's other controllers.
			resourcesv1alpha1.FieldManager, resourcesv1alpha1.HealthFieldManager, resourcesv1alpha1.TokenFieldManager,
			resourcesv1alpha1.FieldManager + "-certificates", resourcesv1alpha1.FieldManager + "-token-invalidator",
			// Kubernetes, which has the controllers of endpoints and the HorizontalPodAutoscaler in kube-controller-manager.
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "clusterrole-aggregation-controller",
			"*cloud-controller-manager", "cluster-autoscaler", "machine-controller-manager", "vpa-*",
			"csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter", "snapshot-controller",
			// cert-manager, which injects CA bundles and fills Secrets, by update and by apply.
			"cainjector", "cert-manager-*",
		}, controllers...),
	}
}

// WithPredecessor returns the policy with one more predecessor, unless the name is empty.
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

// Predecessor reports whether all fields of a manager are taken over.
func (p Policy) Predecessor(manager string) bool {
	return slices.Contains(p.Predecessors, manager) || manager == Preserver
}

// Controller reports whether all fields of a manager stay.
func (p Policy) Controller(manager string) bool {
	return slices.ContainsFunc(p.Controllers, func(name string) bool { return matchesName(name, manager) })
}

// matchesName reports whether a manager has a name in which one "*" may stand for any text.
func matchesName(name, manager string) bool {
	before, after, wild := strings.Cut(name, "*")
	if !wild {
		return name == manager
	}
	return len(manager) >= len(before)+len(after) && strings.HasPrefix(manager, before) && strings.HasSuffix(manager, after)
}

// role is what a manager is to us.
type role int

const (
	// roleController is for managers whose fields stay, and for our own entry.
	roleController role = iota
	// roleClient is for managers whose fields go, but for what all may add.
	roleClient
	// rolePredecessor is for managers whose fields go.
	rolePredecessor
)

// rolesOf returns the role of the manager of each entry; nil if all of them keep their fields.
func (p Policy) rolesOf(entries []metav1.ManagedFieldsEntry) []role {
	var roles []role
	for i, entry := range entries {
		given := p.roleOf(entry, entries)
		if given == roleController {
			continue
		}
		if roles == nil {
			roles = make([]role, len(entries))
		}
		roles[i] = given
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

// FormerApplier returns a manager, other than the predecessors of the policy, that applied an object for a ManagedResource before our first
// apply; empty if there is none. It is known by the origin annotation, which it owns: the binary of a predecessor may have any name.
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

// sharesOrigin reports whether our apply left the origin annotation as others have it, or was not made yet. A sole owner has changed
// it since.
func sharesOrigin(entries []metav1.ManagedFieldsEntry) bool {
	ours := own(entries)
	return ours < 0 || ownsOrigin(entries[ours])
}

// ownsOrigin reports whether the manager of an entry owns the origin annotation.
func ownsOrigin(entry metav1.ManagedFieldsEntry) bool {
	return entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(resourcesv1alpha1.AnnotationOrigin)) &&
		owns(entry.FieldsV1.GetRawBytes(), Pattern{"metadata", "annotations", resourcesv1alpha1.AnnotationOrigin})
}

package fieldowner

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Policy says whose fields the resource-manager takes over, so that those which are in no manifest are removed.
type Policy struct {
	// Predecessors are managers that applied the same manifests before. All their fields are taken over.
	Predecessors []string
	// People are managers of changes made by hand. Their fields are taken over except labels and annotations.
	People []string
}

// DefaultPolicy names the field managers of gardener-resource-manager, kubectl, Helm, Flux and Argo CD.
func DefaultPolicy() Policy {
	return Policy{
		Predecessors: []string{
			"gardener-resource-manager",
			// What kubectl apply wrote, and what was there before anybody used server-side apply (Kubernetes' own names).
			"kubectl-client-side-apply", "before-first-apply", "kubectl-last-applied", "kubectl",
			"helm", "helm-controller", "kustomize-controller", "flux-client-side-apply",
			"argocd-controller", "argocd-application-controller",
		},
		People: []string{"kubectl-edit", "kubectl-patch", "kubectl-set", "kubectl-create", "kubectl-replace"},
	}
}

// labelsAndAnnotations are kept if people added them.
var labelsAndAnnotations = []Pattern{{"metadata", "labels"}, {"metadata", "annotations"}}

// kept are the fields that are never taken over from others: what controllers allocate or scale, what lives in lists of
// which everybody owns a part, and the trace of kubectl rollout restart.
var kept = append(Restarts(), []Pattern{
	{"metadata", "finalizers"},
	{"metadata", "ownerReferences"},
	{"spec", "replicas"},
	{"spec", "volumeClaimTemplates"},
	{"spec", "volumeName"},
	{"spec", "storageClassName"},
	{"spec", "claimRef"},
	{"spec", "nodeName"},
	{"spec", "template", "metadata", "labels", "controller-uid"},
	{"spec", "template", "metadata", "labels", "job-name"},
	{"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"},
	{"spec", "template", "metadata", "labels", "batch.kubernetes.io/job-name"},
	{"spec", "selector", "matchLabels", "controller-uid"},
	{"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"},
	{"spec", "clusterIP"},
	{"spec", "clusterIPs"},
	{"spec", "ipFamilies"},
	{"spec", "ipFamilyPolicy"},
	{"spec", "healthCheckNodePort"},
	{"spec", "loadBalancerIP"},
	{"spec", "ports", "*", "nodePort"},
	{"status"},
}...)

// Displaceable returns the fields of the managers of the policy that are to go to our apply, nil if there are none. Fields
// that match keep stay with their managers. There are none before our first apply. Those of Preserver do not count: what is
// to be preserved changes with the manifest alone, which is applied then.
func Displaceable(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) (*fieldpath.Set, error) {
	return displaceable(slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == Preserver
	}), policy, keep)
}

// DisplaceableLater returns what Displaceable is going to return once there is an entry of ours.
func DisplaceableLater(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) (*fieldpath.Set, error) {
	return takenFrom(entries, policy, keep)
}

func displaceable(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) (*fieldpath.Set, error) {
	if own(entries) < 0 {
		return nil, nil
	}
	return takenFrom(entries, policy, keep)
}

func takenFrom(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) (*fieldpath.Set, error) {
	var taken *fieldpath.Set
	for _, entry := range entries {
		patterns, displaced := policy.keepsOf(entry)
		if !displaced {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		if _, goes := split(fields, slices.Concat(kept, keep, patterns)); !goes.Empty() {
			if taken == nil {
				taken = &fieldpath.Set{}
			}
			taken = taken.Union(goes)
		}
	}
	return taken, nil
}

// Beyond tells whether a set has fields that match none of the patterns.
func Beyond(set *fieldpath.Set, patterns []Pattern) bool {
	if set == nil {
		return false
	}
	_, others := split(set, patterns)
	return !others.Empty()
}

// Displace returns the entries after the fields of the managers of the policy went to our apply, so that the next apply
// removes those that are not in it. It tells whether anything changed. See Displaceable.
func Displace(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
	taken, err := displaceable(entries, policy, keep)
	if taken == nil || err != nil {
		return entries, false, err
	}
	var rest []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		left, err := policy.leave(entry, keep)
		if err != nil {
			return nil, false, err
		}
		if left != nil {
			rest = append(rest, *left)
		}
	}
	mine := own(rest)
	fields, err := fieldsOf(rest[mine])
	if err != nil {
		return nil, false, err
	}
	rest[mine], err = withFields(rest[mine], fields.Union(taken))
	return rest, err == nil, err
}

// DisplaceAll returns the entries after all fields but those to keep went to the resource-manager's Apply entry, whoever owned them, and
// whether that changes them. It is for objects that are the resource-manager's own. Errors are those of Displace.
func DisplaceAll(entries []metav1.ManagedFieldsEntry, keep []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
	var policy Policy
	for _, entry := range entries {
		if entry.Manager != resourcesv1alpha1.FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply {
			policy.Predecessors = append(policy.Predecessors, entry.Manager)
		}
	}
	return Displace(entries, policy, keep)
}

// leave returns what is left of an entry after it was displaced; nil if nothing is.
func (p Policy) leave(entry metav1.ManagedFieldsEntry, keep []Pattern) (*metav1.ManagedFieldsEntry, error) {
	patterns, displaced := p.keepsOf(entry)
	if !displaced {
		return &entry, nil
	}
	fields, err := fieldsOf(entry)
	if err != nil {
		return nil, err
	}
	stays, goes := split(fields, slices.Concat(kept, keep, patterns))
	switch {
	case goes.Empty():
		return &entry, nil
	case stays.Empty():
		return nil, nil
	}
	entry, err = withFields(entry, stays)
	return &entry, err
}

// keepsOf tells whether an entry is displaced, and which of its fields stay.
func (p Policy) keepsOf(entry metav1.ManagedFieldsEntry) ([]Pattern, bool) {
	if entry.Subresource != "" || entry.FieldsV1 == nil {
		return nil, false
	}
	if slices.Contains(p.Predecessors, entry.Manager) || entry.Manager == Preserver {
		return nil, true
	}
	return labelsAndAnnotations, slices.Contains(p.People, entry.Manager)
}

// Yield returns the entries after our fields that match a pattern went to Preserver, so that an apply without them
// leaves them as they are. It tells whether anything changed.
func Yield(entries []metav1.ManagedFieldsEntry, patterns []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
	mine := own(entries)
	if mine < 0 {
		return entries, false, nil
	}
	fields, err := fieldsOf(entries[mine])
	if err != nil {
		return nil, false, err
	}
	goes, stays := split(fields, patterns)
	if goes.Empty() {
		return entries, false, nil
	}
	result := slices.Clone(entries)
	if result[mine], err = withFields(result[mine], stays); err != nil {
		return nil, false, err
	}
	preserver := slices.IndexFunc(result, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == Preserver && entry.APIVersion == result[mine].APIVersion
	})
	if preserver < 0 {
		entry := metav1.ManagedFieldsEntry{
			Manager: Preserver, Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: result[mine].APIVersion, FieldsType: result[mine].FieldsType, Time: result[mine].Time,
		}
		result, preserver = append(result, entry), len(result)
	}
	before, err := fieldsOf(result[preserver])
	if err != nil {
		return nil, false, err
	}
	result[preserver], err = withFields(result[preserver], before.Union(goes))
	return result, err == nil, err
}

// Indivisible returns one of the patterns that names a part of what somebody owns as a whole only, such as an atomic list;
// nil if there is none. Such a part can be left neither out of an apply nor to somebody else.
func Indivisible(entries []metav1.ManagedFieldsEntry, patterns []Pattern) (Pattern, error) {
	var indivisible Pattern
	for _, entry := range entries {
		if len(patterns) == 0 || entry.Subresource == "status" {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		fields.Leaves().Iterate(func(path fieldpath.Path) { // its iterator cannot be left early
			for _, pattern := range patterns {
				if len(path) < len(pattern) && pattern[:len(path)].matches(path) {
					indivisible = pattern
				}
			}
		})
	}
	return indivisible, nil
}

// Existing returns those of the patterns' fields that some manager owns, which is how to tell from metadata that they
// exist.
func Existing(entries []metav1.ManagedFieldsEntry, patterns []Pattern) (*fieldpath.Set, error) {
	all := &fieldpath.Set{}
	for _, entry := range entries {
		if entry.Subresource == "status" {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		all = all.Union(fields)
	}
	existing, _ := split(all, patterns)
	return existing, nil
}

// Leave returns the entries without those of our applies. It tells whether anything changed.
func Leave(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool) {
	rest := slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == resourcesv1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply
	})
	return rest, len(rest) < len(entries)
}

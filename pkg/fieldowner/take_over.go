package fieldowner

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// kept are the fields that are never taken over from others: what controllers allocate or scale, what lives in lists that
// several managers share, and the trace of kubectl rollout restart.
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
	{"spec", "ports", "*", "nodePort"},
	{"status"},
}...)

// keptOfClients are the further fields that are taken over from predecessors alone. Labels and annotations have many owners. A CA bundle that
// is not in the manifest was put there by an injector, and without it the API server reaches no webhook.
var keptOfClients = []Pattern{
	{"metadata", "labels"},
	{"metadata", "annotations"},
	{"webhooks", anyItem, "clientConfig", "caBundle"},
	{"spec", "conversion", "webhook", "clientConfig", "caBundle"},
	{"spec", "caBundle"}, // of APIServices
}

// TakeOverCandidates returns the fields of others that are to go to our apply, nil if there are none. Fields that match keep stay with their
// managers. There are none before our first apply. Those of Preserver do not count: what is to be preserved changes with the manifest alone,
// which is applied then.
func TakeOverCandidates(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) (*fieldpath.Set, error) {
	if own(entries) < 0 {
		return nil, nil
	}
	return TakeOverCandidatesOnceOwned(slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == Preserver
	}), policy, keep)
}

// TakeOverCandidatesOnceOwned returns what TakeOverCandidates is going to return once there is an entry of ours.
func TakeOverCandidatesOnceOwned(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) (*fieldpath.Set, error) {
	parts, err := policy.partsOf(entries, keep)
	if err != nil {
		return nil, err
	}
	return goingOf(parts), nil
}

// Beyond reports whether a set has fields that match none of the patterns, and are not around fields that do.
func Beyond(set *fieldpath.Set, patterns []Pattern) bool {
	if set == nil {
		return false
	}
	matching, others := split(set, patterns)
	return !others.Difference(around(matching)).Empty()
}

// TakeOver returns the entries after the fields of others went to our apply, so that the next apply removes those that are not in it. It
// reports whether anything changed. See TakeOverCandidates.
func TakeOver(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
	if own(entries) < 0 {
		return entries, false, nil
	}
	parts, err := policy.partsOf(entries, keep)
	if err != nil {
		return entries, false, err
	}
	taken := goingOf(parts)
	if taken == nil {
		return entries, false, nil
	}
	var rest []metav1.ManagedFieldsEntry
	for i, entry := range entries {
		if goes := parts[i].goes; goes != nil && !goes.Empty() {
			stays := parts[i].fields.Difference(goes)
			if stays.Empty() {
				continue
			}
			if entry, err = withFields(entry, stays); err != nil {
				return nil, false, err
			}
		}
		rest = append(rest, entry)
	}
	mine := own(rest)
	fields, err := fieldsOf(rest[mine])
	if err != nil {
		return nil, false, err
	}
	rest[mine], err = withFields(rest[mine], fields.Union(taken))
	return rest, err == nil, err
}

// TakeOverAll returns the entries after all fields but those to keep went to the resource-manager's Apply entry, from any manager, and
// whether that changes them. It is for objects that are the resource-manager's own. Errors are those of TakeOver.
func TakeOverAll(entries []metav1.ManagedFieldsEntry, keep []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
	var policy Policy
	for _, entry := range entries {
		policy.Predecessors = append(policy.Predecessors, entry.Manager)
	}
	return TakeOver(entries, policy, keep)
}

// part is what becomes of the fields of one entry. Both sets are nil for entries that stay as they are.
type part struct {
	fields, goes *fieldpath.Set
}

// goingOf returns all fields that go, nil if there are none.
func goingOf(parts []part) *fieldpath.Set {
	var going *fieldpath.Set
	for _, part := range parts {
		switch {
		case part.goes == nil || part.goes.Empty():
		case going == nil:
			going = part.goes
		default:
			going = going.Union(part.goes)
		}
	}
	return going
}

// partsOf returns what becomes of each of the entries.
func (p Policy) partsOf(entries []metav1.ManagedFieldsEntry, keep []Pattern) ([]part, error) {
	roles := p.rolesOf(entries)
	if roles == nil {
		return nil, nil
	}
	parts := make([]part, len(entries))
	ours, added := &fieldpath.Set{}, &fieldpath.Set{}
	for i, entry := range entries {
		if roles[i] == roleController && i != own(entries) {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		if i == own(entries) {
			ours = fields
			continue
		}
		parts[i].fields, added = fields, added.Union(fields)
	}
	added = added.Difference(ours)
	for i := range parts {
		if fields := parts[i].fields; fields != nil {
			parts[i].goes = goingFrom(fields, roles[i], slices.Concat(kept, keep), ours, added)
		}
	}
	return parts, nil
}

// goingFrom returns which fields of one manager go. What is kept in items of lists goes with items that are there because a manager added
// them: otherwise a part of them would stay. What a client has in common with us stays with both, so that a client that applies the same as
// we do is left alone.
func goingFrom(fields *fieldpath.Set, role role, patterns []Pattern, ours, added *fieldpath.Set) *fieldpath.Set {
	if role == roleClient {
		patterns = slices.Concat(patterns, keptOfClients)
		fields = fields.Difference(ours)
	}
	goes, stays := &fieldpath.Set{}, &fieldpath.Set{}
	for path := range fields.All() {
		matches := func(pattern Pattern) bool {
			item := slices.Index(pattern, anyItem)
			return pattern.matches(path) && (item < 0 || !added.Has(path[:item+1]))
		}
		if !slices.ContainsFunc(patterns, matches) {
			goes.Insert(path.Copy())
			continue
		}
		stays.Insert(path.Copy())
	}
	return goes.Difference(around(stays))
}

// around returns the maps and items that exist because of the fields in them.
func around(fields *fieldpath.Set) *fieldpath.Set {
	result := &fieldpath.Set{}
	for path := range fields.All() {
		for depth := 1; depth < len(path); depth++ {
			result.Insert(path[:depth].Copy())
		}
	}
	return result
}

// Relinquish returns the entries after our fields that match a pattern went to Preserver, so that an apply without them
// leaves them as they are. It reports whether anything changed.
func Relinquish(entries []metav1.ManagedFieldsEntry, patterns []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
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

// Indivisible returns one of the patterns that names a part of what a manager owns only as a whole, such as an atomic list;
// nil if there is none. Such a part can be left neither out of an apply nor to another manager.
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

// Existing returns those of the patterns' fields that some manager owns, which shows in metadata that they
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

// HasStatus reports whether some manager owns one of the named fields of the status, which shows in metadata that it was set.
func HasStatus(entries []metav1.ManagedFieldsEntry, names []string) (bool, error) {
	patterns := make([]Pattern, 0, len(names))
	for _, name := range names {
		patterns = append(patterns, Pattern{"status", name})
	}
	for _, entry := range entries {
		fields, err := fieldsOf(entry)
		if err != nil {
			return false, err
		}
		if set, _ := split(fields, patterns); !set.Empty() {
			return true, nil
		}
	}
	return false, nil
}

// Disown returns the entries without those of our applies. It reports whether anything changed.
func Disown(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool) {
	rest := slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == resourcesv1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply
	})
	return rest, len(rest) < len(entries)
}

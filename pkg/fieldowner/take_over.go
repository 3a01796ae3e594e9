package fieldowner

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// kept are the fields that are never taken over: fields that controllers allocate or scale, fields in lists that
// several managers share, and the annotation of kubectl rollout restart.
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

// keptOfClients are additional fields that are taken over only from predecessors. Labels and annotations have many
// owners. A CA bundle that is not in the manifest was set by an injector, and the API server cannot reach the webhook
// without it.
var keptOfClients = []Pattern{
	{"metadata", "labels"},
	{"metadata", "annotations"},
	{"webhooks", anyItem, "clientConfig", "caBundle"},
	{"spec", "conversion", "webhook", "clientConfig", "caBundle"},
	{"spec", "caBundle"}, // of APIServices
}

// shared are the fields that have several owners in every object.
var shared = []Pattern{
	{"metadata", "labels"}, {"metadata", "annotations"}, {"metadata", "finalizers"}, {"metadata", "ownerReferences"}, {"status"},
}

// TakeOverCandidates returns the fields of other owners that have to be taken over. It is nil if there are none, and
// before our first apply. Managers retain fields that match keep. Fields of Preserver do not count, because the
// preserved fields change only with the manifest, which is then applied.
func TakeOverCandidates(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) (*fieldpath.Set, error) {
	if own(entries) < 0 {
		return nil, nil
	}
	return TakeOverCandidatesOnceOwned(slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == Preserver
	}), policy, keep)
}

// TakeOverCandidatesOnceOwned returns the result of TakeOverCandidates for the time after our first apply.
func TakeOverCandidatesOnceOwned(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) (*fieldpath.Set, error) {
	transfers, err := policy.transfersOf(entries, keep)
	if err != nil {
		return nil, err
	}
	return allTaken(transfers), nil
}

// Beyond reports whether a set has fields that neither match one of the patterns nor contain a field that does.
func Beyond(set *fieldpath.Set, patterns []Pattern) bool {
	if set == nil {
		return false
	}
	matching, others := split(set, patterns)
	return !others.Difference(ancestorsOf(matching)).Empty()
}

// PathsBeyond returns the paths of the fields for which Beyond returns true, at most three and "…" for more. They contain
// keys, but no values.
func PathsBeyond(set *fieldpath.Set, patterns []Pattern) []string {
	const shown = 3
	if set == nil {
		return nil
	}
	matching, others := split(set, patterns)
	var paths []string
	others.Difference(ancestorsOf(matching)).Leaves().Iterate(func(path fieldpath.Path) { // this iterator has no early exit
		if item := slices.IndexFunc(path, func(element fieldpath.PathElement) bool { return element.Value != nil }); item >= 0 {
			path = path[:item] // an item of a set
		}
		if text := strings.TrimPrefix(path.String(), "."); !slices.Contains(paths, text) {
			paths = append(paths, text)
		}
	})
	if len(paths) > shown {
		paths = append(paths[:shown], "…")
	}
	return paths
}

// TakeOver returns the entries after the transfer of the fields of other owners to our apply, so that the next apply
// removes those that it does not contain. It reports whether anything has changed. See TakeOverCandidates.
func TakeOver(entries []metav1.ManagedFieldsEntry, policy Policy, keep []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
	if own(entries) < 0 {
		return entries, false, nil
	}
	transfers, err := policy.transfersOf(entries, keep)
	if err != nil {
		return entries, false, err
	}
	all := allTaken(transfers)
	if all == nil {
		return entries, false, nil
	}
	var rest []metav1.ManagedFieldsEntry
	for i, entry := range entries {
		if taken := transfers[i].taken; taken != nil && !taken.Empty() {
			retained := transfers[i].fields.Difference(taken)
			if retained.Empty() {
				continue
			}
			if entry, err = withFields(entry, retained); err != nil {
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
	rest[mine], err = withFields(rest[mine], fields.Union(all))
	return rest, err == nil, err
}

// TakeOverAll returns the entries after the transfer of all fields, except those to keep, from any manager to the Apply
// entry of the resource-manager, and reports whether anything has changed. It is meant for objects that belong to the
// resource-manager. Errors are those of TakeOver.
func TakeOverAll(entries []metav1.ManagedFieldsEntry, keep []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
	var policy Policy
	for _, entry := range entries {
		policy.Predecessors = append(policy.Predecessors, entry.Manager)
	}
	return TakeOver(entries, policy, keep)
}

// transfer contains the fields of one entry, and those of them that are taken over. Both sets are nil if the entry
// stays unchanged.
type transfer struct {
	fields, taken *fieldpath.Set
}

// allTaken returns all fields that are taken over. It is nil if there are none.
func allTaken(transfers []transfer) *fieldpath.Set {
	var all *fieldpath.Set
	for _, transfer := range transfers {
		switch {
		case transfer.taken == nil || transfer.taken.Empty():
		case all == nil:
			all = transfer.taken
		default:
			all = all.Union(transfer.taken)
		}
	}
	return all
}

// transfersOf returns the transfer for each entry.
func (p Policy) transfersOf(entries []metav1.ManagedFieldsEntry, keep []Pattern) ([]transfer, error) {
	roles := p.rolesOf(entries)
	if roles == nil {
		return nil, nil
	}
	transfers := make([]transfer, len(entries))
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
		transfers[i].fields, added = fields, added.Union(fields)
	}
	added = added.Difference(ours)
	for i := range transfers {
		if fields := transfers[i].fields; fields != nil {
			transfers[i].taken = takenFrom(fields, roles[i], slices.Concat(p.exempt(roles[i]), keep), ours, added)
		}
	}
	return transfers, nil
}

// takenFrom returns the fields that are taken over from one manager. A list item that a manager added is taken over
// completely, including the kept fields in it. Otherwise, a part of the item would remain. Fields that a client shares
// with us are not taken over, so that a client that applies the same fields as we do is left alone.
func takenFrom(fields *fieldpath.Set, role role, patterns []Pattern, ours, added *fieldpath.Set) *fieldpath.Set {
	if role == roleClient {
		fields = fields.Difference(ours)
	}
	taken, retained := &fieldpath.Set{}, &fieldpath.Set{}
	for path := range fields.All() {
		matches := func(pattern Pattern) bool {
			item := slices.Index(pattern, anyItem)
			return pattern.matches(path) && (item < 0 || !added.Has(path[:item+1]))
		}
		if !slices.ContainsFunc(patterns, matches) {
			taken.Insert(path.Copy())
			continue
		}
		retained.Insert(path.Copy())
	}
	return taken.Difference(ancestorsOf(retained))
}

// ancestorsOf returns the maps and list items that contain the fields.
func ancestorsOf(fields *fieldpath.Set) *fieldpath.Set {
	result := &fieldpath.Set{}
	for path := range fields.All() {
		for depth := 1; depth < len(path); depth++ {
			result.Insert(path[:depth].Copy())
		}
	}
	return result
}

// Relinquish returns the entries after the transfer of our fields that match a pattern to Preserver, so that an apply
// without them does not change them. It reports whether anything has changed.
func Relinquish(entries []metav1.ManagedFieldsEntry, patterns []Pattern) ([]metav1.ManagedFieldsEntry, bool, error) {
	mine := own(entries)
	if mine < 0 {
		return entries, false, nil
	}
	fields, err := fieldsOf(entries[mine])
	if err != nil {
		return nil, false, err
	}
	relinquished, retained := split(fields, patterns)
	if relinquished.Empty() {
		return entries, false, nil
	}
	result := slices.Clone(entries)
	if result[mine], err = withFields(result[mine], retained); err != nil {
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
	result[preserver], err = withFields(result[preserver], before.Union(relinquished))
	return result, err == nil, err
}

// Indivisible returns one of the patterns for a part of a field that a manager can only own as a whole, such as an
// atomic list. It is nil if there is none. Such a part can neither be omitted from an apply nor transferred to another
// manager.
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
		fields.Leaves().Iterate(func(path fieldpath.Path) { // this iterator has no early exit
			for _, pattern := range patterns {
				if len(path) < len(pattern) && pattern[:len(path)].matches(path) {
					indivisible = pattern
				}
			}
		})
	}
	return indivisible, nil
}

// Existing returns the fields that match the patterns and have an owner. In metadata, ownership shows that a field
// exists.
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

// HasStatus reports whether a manager owns one of the named fields of the status. In metadata, ownership shows that a
// field was set.
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

// Disown returns the entries without those of our applies. It reports whether anything has changed.
func Disown(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool) {
	rest := slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == resourcesv1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply
	})
	return rest, len(rest) < len(entries)
}

package fieldowner

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MigrateVersions returns the entries with all fields recorded in one version of the kind, and reports whether anything
// has changed. An apply converts the object to the version of every entry. This fails if the object has a field that
// does not exist in an old version, such as one with a default. Entries of the same manager are merged.
func MigrateVersions(entries []metav1.ManagedFieldsEntry, apiVersion string) ([]metav1.ManagedFieldsEntry, bool, error) {
	if !slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return entry.APIVersion != apiVersion }) {
		return entries, false, nil
	}
	migrated := make([]metav1.ManagedFieldsEntry, 0, len(entries))
	for _, entry := range entries {
		entry.APIVersion = apiVersion
		same := slices.IndexFunc(migrated, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == entry.Manager && other.Operation == entry.Operation && other.Subresource == entry.Subresource
		})
		if same < 0 {
			migrated = append(migrated, entry)
			continue
		}
		first, err := fieldsOf(migrated[same])
		if err != nil {
			return nil, false, err
		}
		second, err := fieldsOf(entry)
		if err != nil {
			return nil, false, err
		}
		if migrated[same], err = withFields(entry, first.Union(second)); err != nil {
			return nil, false, err
		}
	}
	return migrated, true, nil
}

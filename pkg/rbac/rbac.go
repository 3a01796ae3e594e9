// Package rbac computes the permissions that a resource-manager with a given configuration needs in its clusters. It is
// the only source of the permissions: the Helm chart has a copy of its table.
package rbac

import (
	_ "embed" // for the table
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

//go:embed rights.yaml
var table []byte

// Table returns the table of all permissions, in YAML.
func Table() []byte { return slices.Clone(table) }

// Permissions are the permissions in both clusters.
type Permissions struct {
	// Source are the permissions in the cluster of ManagedResources.
	Source Rules `json:"source"`
	// Target are the permissions in the managed cluster. They do not include those for the objects in ManagedResources,
	// which only the authors of the ManagedResources know. See ForObjects.
	Target Rules `json:"target"`
}

// Rules are the permissions in one cluster.
type Rules struct {
	// Cluster are the cluster-wide permissions.
	Cluster []rbacv1.PolicyRule `json:"cluster,omitempty"`
	// Namespaced are the permissions in single namespaces, by namespace.
	Namespaced map[string][]rbacv1.PolicyRule `json:"namespaced,omitempty"`
}

// ForObjects returns the verbs that are needed for a kind of object in ManagedResources.
func ForObjects() []string { return []string{"get", "list", "watch", "create", "patch", "delete"} }

// row is a row of the table. The first lines of the table explain the fields.
type row struct {
	For        string      `json:"for"`
	Cluster    string      `json:"cluster"`
	When       []condition `json:"when,omitempty"`
	Namespaces where       `json:"namespaces,omitzero"`
	Rules      []rule      `json:"rules"`
}

type condition struct {
	Path string   `json:"path"`
	In   []string `json:"in,omitempty"`
}

type where struct {
	From  []string `json:"from,omitempty"`
	Names []string `json:"names,omitempty"`
}

type rule struct {
	rbacv1.PolicyRule `json:",inline"`

	ResourceNamesFrom string `json:"resourceNamesFrom,omitempty"`
}

// The clusters of rows.
const (
	clusterSource = "source"
	clusterTarget = "target"
)

// For returns the permissions that a configuration needs. Its defaults must be set. For fails if the configuration
// cannot be encoded as JSON.
func For(config *configv1alpha1.ResourceManagerConfiguration) (Permissions, error) {
	encoded, err := json.Marshal(config)
	if err != nil {
		return Permissions{}, fmt.Errorf("encode the configuration: %w", err)
	}
	tree := map[string]any{}
	if err := json.Unmarshal(encoded, &tree); err != nil {
		return Permissions{}, fmt.Errorf("read the configuration: %w", err)
	}
	rows, err := rowsOfTable()
	if err != nil {
		return Permissions{}, err
	}
	var rights Permissions
	for _, one := range rows {
		if slices.ContainsFunc(one.When, func(c condition) bool { return !c.holds(tree) }) {
			continue
		}
		rules := &rights.Source
		if one.Cluster == clusterTarget {
			rules = &rights.Target
		}
		rules.add(one.Namespaces.in(tree), one.rules(tree))
	}
	return rights, nil
}

// rowsOfTable reads the table once: gardenlets compute permissions in each pass of a Shoot. Callers must not change the rows.
var rowsOfTable = sync.OnceValues(func() ([]row, error) { return rowsOf(table) })

func rowsOf(table []byte) ([]row, error) {
	var rows []row
	if err := yaml.UnmarshalStrict(table, &rows); err != nil {
		return nil, fmt.Errorf("read the table of permissions: %w", err)
	}
	return rows, nil
}

// add adds rules in the namespaces, or cluster-wide if there are none.
func (r *Rules) add(namespaces []string, rules []rbacv1.PolicyRule) {
	if len(namespaces) == 0 {
		r.Cluster = append(r.Cluster, rules...)
	}
	for _, namespace := range namespaces {
		if r.Namespaced == nil {
			r.Namespaced = map[string][]rbacv1.PolicyRule{}
		}
		r.Namespaced[namespace] = append(r.Namespaced[namespace], rules...)
	}
}

// holds reports whether a field is set, and has one of the values if there are any.
func (c condition) holds(tree map[string]any) bool {
	switch value := at(tree, c.Path).(type) {
	case nil:
		return false
	case bool:
		return value
	case string:
		return value != "" && (len(c.In) == 0 || slices.Contains(c.In, value))
	case map[string]any:
		return len(value) > 0
	default:
		return true
	}
}

// in returns the namespaces; empty means all.
func (w where) in(tree map[string]any) []string {
	for _, path := range w.From {
		if names := namesAt(tree, path); len(names) > 0 {
			return names
		}
	}
	return w.Names
}

func (r row) rules(tree map[string]any) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(r.Rules))
	for _, one := range r.Rules {
		complete := *one.DeepCopy()
		if one.ResourceNamesFrom != "" {
			complete.ResourceNames = namesAt(tree, one.ResourceNamesFrom)
		}
		rules = append(rules, complete)
	}
	return rules
}

// at returns the value of a field; nil if it is missing.
func at(tree map[string]any, path string) any {
	var value any = tree
	for key := range strings.SplitSeq(path, ".") {
		fields, is := value.(map[string]any)
		if !is {
			return nil
		}
		value = fields[key]
	}
	return value
}

// namesAt returns the names in a field that holds a name or a list of names.
func namesAt(tree map[string]any, path string) []string {
	var names []string
	switch value := at(tree, path).(type) {
	case string:
		if value != "" {
			names = append(names, value)
		}
	case []any:
		for _, one := range value {
			if name, is := one.(string); is {
				names = append(names, name)
			}
		}
	}
	return names
}

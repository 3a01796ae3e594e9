// Package rights collects the permissions that the controllers of a program declare, for the ClusterRole in its chart.
package rights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Right is a permission in a cluster.
type Right struct {
	// For says what needs it.
	For string
	// Rule is the permission. All rules with the same group, resource and names become one.
	Rule rbacv1.PolicyRule
	// Namespaced limits it to the namespace of the program.
	Namespaced bool
}

// May returns a right for resources of one API group.
func May(purpose, group string, resources []string, verbs ...string) Right {
	return Right{For: purpose, Rule: rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}}
}

// InNamespace returns the right, limited to the namespace of the program.
func (r Right) InNamespace() Right {
	r.Namespaced = true
	return r
}

// Reads are the verbs for objects that are cached.
func Reads() []string { return []string{"get", "list", "watch"} }

// Needs are the rights of one controller.
type Needs struct {
	// Name of the controller.
	Name   string
	Rights []Right
}

// YAML returns the permissions of all controllers as YAML. Rules for the same resource are merged, and a comment says which
// controllers need them, and for what.
func YAML(all []Needs) ([]byte, error) {
	merged := map[string]*granted{}
	for _, one := range all {
		for _, right := range one.Rights {
			for _, group := range right.Rule.APIGroups {
				for _, resource := range right.Rule.Resources {
					into := merged[keyOf(group, resource, right.Rule.ResourceNames)]
					if into == nil {
						into = &granted{rule: rbacv1.PolicyRule{
							APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: right.Rule.ResourceNames,
						}}
						merged[keyOf(group, resource, right.Rule.ResourceNames)] = into
					}
					into.rule.Verbs = union(into.rule.Verbs, right.Rule.Verbs...)
					into.purposes = union(into.purposes, one.Name+": "+right.For)
				}
			}
		}
	}
	var text strings.Builder
	for _, one := range sorted(merged) {
		for _, purpose := range one.purposes {
			fmt.Fprintf(&text, "# %s\n", purpose)
		}
		encoded, err := yaml.Marshal([]rbacv1.PolicyRule{one.rule})
		if err != nil {
			return nil, fmt.Errorf("encode a permission: %w", err)
		}
		text.Write(encoded)
	}
	return []byte(text.String()), nil
}

// granted is a permission, and what needs it.
type granted struct {
	rule     rbacv1.PolicyRule
	purposes []string
}

func keyOf(group, resource string, names []string) string {
	return group + "/" + resource + "/" + strings.Join(names, ",")
}

func union(all []string, more ...string) []string {
	all = append(all, more...)
	slices.Sort(all)
	return slices.Compact(all)
}

func sorted(merged map[string]*granted) []*granted {
	var all []*granted
	for _, one := range merged {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *granted) int {
		return cmp.Or(
			cmp.Compare(a.rule.APIGroups[0], b.rule.APIGroups[0]), cmp.Compare(a.rule.Resources[0], b.rule.Resources[0]),
			slices.Compare(a.rule.ResourceNames, b.rule.ResourceNames),
		)
	})
	return all
}

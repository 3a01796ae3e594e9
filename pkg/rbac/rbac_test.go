package rbac

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

func parse(t *testing.T, text string) *configv1alpha1.ResourceManagerConfiguration {
	t.Helper()
	config, err := configv1alpha1.Parse([]byte("apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// line returns a rule as text.
func line(rule rbacv1.PolicyRule) string {
	return strings.Join([]string{
		strings.Join(rule.Verbs, ","), strings.Join(rule.APIGroups, ","), strings.Join(rule.Resources, ","), strings.Join(rule.ResourceNames, ","),
	}, " ")
}

func has(rules []rbacv1.PolicyRule, wanted string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return line(rule) == wanted })
}

func TestFor(t *testing.T) {
	const lease, machines = "get,update coordination.k8s.io leases mine", "get,list,watch machine.sapcloud.io machines "
	const statuses, tokens = "patch resources.gardener.cloud managedresources/status ", "create  serviceaccounts/token "
	for name, test := range map[string]struct {
		config string
		check  func(Permissions) bool
	}{
		"everywhere": {"leaderElection: {leaderElect: false}", func(r Permissions) bool {
			return has(r.Source.Cluster, statuses) && len(r.Source.Namespaced) == 0 && !has(r.Target.Cluster, tokens)
		}},
		"in namespaces": {"sourceClientConnection: {namespaces: [a, b]}\nleaderElection: {leaderElect: false}", func(r Permissions) bool {
			return len(r.Source.Cluster) == 0 && has(r.Source.Namespaced["a"], statuses) && has(r.Source.Namespaced["b"], statuses)
		}},
		"a leader": {"leaderElection: {resourceNamespace: c, resourceName: mine}", func(r Permissions) bool { return has(r.Source.Namespaced["c"], lease) }},
		"tokens": {"leaderElection: {leaderElect: false}\ncontrollers: {tokenRequestor: {enabled: true}}", func(r Permissions) bool {
			return has(r.Target.Cluster, tokens) && !has(r.Target.Cluster, "get,list,delete  secrets,serviceaccounts ")
		}},
		"tokens in a namespace": {
			"leaderElection: {leaderElect: false}\ncontrollers: {tokenRequestor: {enabled: true, cleanUp: true, serviceAccountNamespaces: [d]}}",
			func(r Permissions) bool {
				return !has(r.Target.Cluster, tokens) && has(r.Target.Namespaced["d"], tokens) && has(r.Target.Cluster, "get,list,delete  secrets,serviceaccounts ")
			},
		},
		"no machines": {"leaderElection: {leaderElect: false}\ncontrollers: {csrApprover: {enabled: true}}", func(r Permissions) bool {
			return len(r.Source.Namespaced) == 0 && !has(r.Source.Cluster, machines)
		}},
		"machines": {"leaderElection: {leaderElect: false}\ncontrollers: {csrApprover: {enabled: true, machineNamespace: m}}", func(r Permissions) bool {
			return has(r.Source.Namespaced["m"], machines) && !has(r.Source.Cluster, machines)
		}},
	} {
		got, err := For(parse(t, test.config))
		if err != nil || !test.check(got) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestTable checks that the table references existing fields of the configuration, and that permissions for one cluster are not
// listed for the other.
func TestTable(t *testing.T) {
	rows, err := rowsOf(Table())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.For == "" || len(row.Rules) == 0 || row.Cluster != clusterSource && row.Cluster != clusterTarget {
			t.Errorf("a row without name, rules or cluster: %+v", row)
		}
		paths := slices.Clone(row.Namespaces.From)
		for _, condition := range row.When {
			paths = append(paths, condition.Path)
		}
		for _, rule := range row.Rules {
			if len(rule.Verbs) == 0 || len(rule.Resources) == 0 || slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") {
				t.Errorf("%s: the rule allows nothing, or everything: %+v", row.For, rule)
			}
			if rule.ResourceNamesFrom != "" {
				paths = append(paths, rule.ResourceNamesFrom)
			}
		}
		for _, path := range paths {
			if !isField(reflect.TypeFor[configv1alpha1.ResourceManagerConfiguration](), strings.Split(path, ".")) {
				t.Errorf("%s: the configuration has no field %s", row.For, path)
			}
		}
	}
}

// isField reports whether a type has a field with the given path of JSON names.
func isField(of reflect.Type, path []string) bool {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if len(path) == 0 {
		return true
	}
	if of.Kind() != reflect.Struct {
		return false
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == path[0] && isField(field.Type, path[1:]) || name == "" && field.Anonymous && isField(field.Type, path) {
			return true
		}
	}
	return false
}

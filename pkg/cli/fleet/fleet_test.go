package fleet

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/garden"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/installation"
	"github.com/trellis-k8s/trellis/pkg/seed"
	"github.com/trellis-k8s/trellis/pkg/shoot"
)

func TestParse(t *testing.T) {
	one := Name{Shoot, types.NamespacedName{Namespace: "garden-dev", Name: "one"}}
	local := Name{Seed, types.NamespacedName{Name: "local"}}
	main := Name{Garden, types.NamespacedName{Name: "main"}}
	for text, want := range map[string]Name{
		"shoot/garden-dev/one": one, "shoots/garden-dev/one": one, "Shoot.core.gardener.cloud/garden-dev/one": one, "seed/local": local, "seeds/local": local,
		"gardens/main": main, "garden.operator.gardener.cloud/main": main, "Gardens.operator.gardener.cloud/main": main,
	} {
		if name, is, err := Parse(text); err != nil || !is || name != want {
			t.Errorf("%s: %v, %t, %v", text, name, is, err)
		}
	}
	for _, text := range []string{"webshop", "garden/webshop", "mr/webshop", "shoots", "shooting/star"} {
		if name, is, err := Parse(text); err != nil || is {
			t.Errorf("%s: %v, %t, %v", text, name, is, err)
		}
	}
	for _, text := range []string{"shoot/one", "shoot/a/b/c", "shoot//one", "shoot/a/", "seed/", "seed/a/b", "gardens/", "gardens/a/b"} {
		if _, is, err := Parse(text); err == nil || !is || !strings.Contains(err.Error(), ": use ") {
			t.Errorf("%s: %t, %v", text, is, err)
		}
	}
	if one.Argument() != "shoot/garden-dev/one" || local.Argument() != "seed/local" || one.String() != "Shoot garden-dev/one" || local.String() != "Seed local" ||
		main.Argument() != "gardens/main" {
		t.Errorf("%s, %s, %s, %s", one.Argument(), local.Argument(), one, local)
	}
}

func TestOf(t *testing.T) {
	for _, test := range []struct {
		args   []string
		choice console.Choice
		named  bool
		err    string
	}{
		{args: nil},
		{args: []string{"a", "garden/b"}},
		{args: []string{"seed/local"}, named: true},
		{args: []string{"seed/local", "a"}, err: "the only argument"},
		{args: []string{"shoot/a/b"}, choice: console.Choice{AllNamespaces: true}, err: "--all-namespaces"},
		{args: []string{"shoot/a"}, err: "use shoot/NAMESPACE/NAME"},
	} {
		name, err := Of(test.args, test.choice)
		if (name != nil) != test.named || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%v: %v, %v", test.args, name, err)
		}
	}
}

// TestSteps checks that an object comes after the objects that it waits for, also if it is only deleted before them.
func TestSteps(t *testing.T) {
	var items []resourcesv1alpha1.ManagedResource
	add := func(name string, after ...string) {
		mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		for _, other := range after {
			mr.Spec.DependsOn = append(mr.Spec.DependsOn, resourcesv1alpha1.Dependency{Name: other})
		}
		items = append(items, mr)
	}
	add("system", "manager")
	add("manager", "server")
	add("server", "etcd", "service", "elsewhere")
	add("etcd")
	add("service")
	add("namespace")
	items[5].Spec.DeleteAfter = []resourcesv1alpha1.ManagedResourceReference{{Name: "etcd"}, {Name: "service"}, {Name: "server"}, {Name: "manager"}, {Name: "system"}}
	add("circle", "wheel")
	add("wheel", "circle")
	var got []string
	for _, step := range Steps(items) {
		var names []string
		for i := range step {
			names = append(names, step[i].Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	text := strings.Join(got, "|")
	for _, pair := range [][2]string{{"namespace", "etcd"}, {"etcd", "server"}, {"service", "server"}, {"server", "manager"}, {"manager", "system"}} {
		if step := func(name string) int {
			before, _, _ := strings.Cut(text, name)
			return strings.Count(before, "|")
		}; step(pair[0]) >= step(pair[1]) {
			t.Errorf("%s comes after %s: %q", pair[0], pair[1], got)
		}
	}
	if count := strings.Count(text, " ") + strings.Count(text, "|") + 1; count != len(items) {
		t.Errorf("%d of %d items are in %q", count, len(items), got)
	}
}

// TestFlows checks that the names of flows are those of package flow.
func TestFlows(t *testing.T) {
	if flows[Shoot] != shoot.FlowName || flows[Seed] != seed.FlowName || flows[Garden] != garden.FlowName || installations != installation.FlowName {
		t.Errorf("the flows are %v and %s", flows, installations)
	}
}

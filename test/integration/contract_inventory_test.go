package integration

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestContractInventoryOrder: the order is ascending by the text <group>/<kind>/<namespace>/<name>, in which a hyphen
// sorts before the slash.
func TestContractInventoryOrder(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set",
		f.here("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: NS}\n"),
		f.here("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS}\n"),
		f.here("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a, namespace: NS}\n"),
		f.here("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: NS}\nspec: {capacity: {storage: 1Gi}, "+
			"accessModes: [ReadWriteOnce], storageClassName: none, hostPath: {path: /nowhere}}\n"),
		f.here("apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-z}\n"),
		f.here("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: NS-z}\n"),
		f.configMap("b", "1"), f.configMap("a", "1"), f.configMap("a-b", "1"),
		f.here("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: in-default-NS}\n"),
		f.here("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: z, namespace: NS}\n"+
			"spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: "+podTemplate+"}\n"),
	)
	mr = f.reconcileOK(mr.Name)
	want := strings.Split(f.here(`v1 ConfigMap default in-default-NS
v1 ConfigMap NS-z a
v1 ConfigMap NS a
v1 ConfigMap NS a-b
v1 ConfigMap NS b
v1 Namespace  NS-z
v1 PersistentVolume  NS
v1 ServiceAccount NS a
apps/v1 ReplicaSet NS z
rbac.authorization.k8s.io/v1 ClusterRole  NS
rbac.authorization.k8s.io/v1 Role NS a`), "\n")
	if got := entries(mr); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestContractInventoryEntries(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set",
		f.marked("one", "labels: {l: m, injected: m}\n  annotations: {a: m}"),
		f.marked("ignored", "labels: {l: m, injected: m}\n  annotations: {resources.gardener.cloud/ignore: \"true\"}"),
		f.marked("released", "annotations: {resources.gardener.cloud/mode: Ignore}"),
	)
	f.change(mr, func() { mr.Spec.InjectLabels = map[string]string{"injected": "yes"} })
	mr = f.reconcileOK("set")
	if got, want := entries(mr), []string{"v1 ConfigMap " + f.namespace + " ignored", "v1 ConfigMap " + f.namespace + " one"}; !slices.Equal(got, want) {
		t.Fatalf("the inventory is %v, want %v", got, want)
	}
	one := mr.Status.Resources[1]
	want := map[string]string{"l": "m", "injected": "yes", "resources.gardener.cloud/managed-by": f.namespace}
	for _, entry := range mr.Status.Resources { // includes the labels of an ignored object, although it is created without ours
		if !maps.Equal(entry.Labels, want) {
			t.Errorf("labels of %s are %v, want %v", entry.Name, entry.Labels, want)
		}
	}
	if live := f.liveConfigMap("ignored"); !maps.Equal(live.Labels, map[string]string{"l": "m", "injected": "m"}) {
		t.Errorf("the ignored object has the labels %v", live.Labels)
	}
	if want := map[string]string{"a": "m"}; !maps.Equal(one.Annotations, want) {
		t.Errorf("annotations are %v, want %v", one.Annotations, want)
	}
	if one.UID != "" || one.ResourceVersion != "" || one.FieldPath != "" {
		t.Errorf("further fields are set: %+v", one)
	}
}

// TestContractChecksum: the checksum is the lower-case hex of 32 bytes. It changes only with the data and their
// order.
func TestContractChecksum(t *testing.T) {
	f := newFixture(t)
	f.secret("a", "a.yaml", f.configMap("a", "1"))
	f.secret("b", "b.yaml", f.configMap("b", "1"))
	mr := f.managedResource("set", "a", "b")
	seen := map[string]string{}
	sum := func(what string) string {
		f.Helper()
		got := f.reconcileOK("set").Status.SecretsDataChecksum
		if got == nil || !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(*got) {
			t.Fatalf("%s: the checksum is %v", what, got)
		}
		return *got
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"at first", func() {}},
		{"another order", func() { mr.Spec.SecretRefs[0], mr.Spec.SecretRefs[1] = mr.Spec.SecretRefs[1], mr.Spec.SecretRefs[0] }},
		{"other data", func() { f.secret("b", "b.yaml", f.configMap("b", "2")) }},
	} {
		f.refresh(mr, step.do)
		got := sum(step.what)
		if before, twice := seen[got]; twice {
			t.Errorf("%s: the checksum is that of %s", step.what, before)
		}
		seen[got] = step.what
		f.refresh(mr, func() { mr.Annotations = map[string]string{"a": step.what} })
		if again := sum(step.what); again != got {
			t.Errorf("%s: the checksum changes without a cause", step.what)
		}
	}
}

// TestContractEquivalences moves an object from the first group to the last. If the groups are equivalent, the object
// is not removed.
func TestContractEquivalences(t *testing.T) {
	type set = []resourcesv1alpha1.GroupKind
	gk := func(group string) resourcesv1alpha1.GroupKind {
		return resourcesv1alpha1.GroupKind{Group: group, Kind: "Twin"}
	}
	for name, test := range map[string]struct {
		sets func(a, b, c string) []set
		kept bool
	}{
		"none":                 {func(_, _, _ string) []set { return nil }, false},
		"of both":              {func(a, _, c string) []set { return []set{{gk(a), gk(c)}} }, true},
		"joined by a third":    {func(a, b, c string) []set { return []set{{gk(a), gk(b)}, {gk(c), gk(b)}} }, true},
		"of others":            {func(a, b, c string) []set { return []set{{gk(a), gk(b)}, {gk(c), {Group: c, Kind: "Other"}}} }, false},
		"of another kind only": {func(a, _, c string) []set { return []set{{{Group: a, Kind: "Other"}, gk(c)}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			a, b, c := "a."+f.namespace+".example.org", "b."+f.namespace+".example.org", "c."+f.namespace+".example.org"
			twin := func(group string) string {
				return f.here("apiVersion: " + group + "/v1\nkind: Twin\nmetadata: {name: x, namespace: NS}\n")
			}
			definitions := f.manage("definitions", strings.ReplaceAll(twins, "GROUP", a), strings.ReplaceAll(twins, "GROUP", c))
			f.reconcileOK("definitions")
			mr := f.manage("set", twin(a))
			f.change(mr, func() { mr.Spec.Equivalences = test.sets(a, b, c) })
			f.reconcileOK("set")
			f.secret("set", "objects.yaml", twin(c))
			moved := f.reconcileOK("set")
			f.object(twin(c))
			err := f.client.Get(f.ctx, client.ObjectKeyFromObject(f.parse(twin(a))), f.parse(twin(a)))
			if kept := err == nil; kept != test.kept {
				t.Errorf("the object of the first group: %v, want it kept: %t", err, test.kept)
			}
			if want := map[bool]int{true: 2, false: 1}[test.kept]; len(moved.Status.Resources) != want {
				t.Errorf("the inventory is %v, want %d entries", entries(moved), want)
			}
			f.delete(mr)
			if f.client.Get(f.ctx, client.ObjectKeyFromObject(f.parse(twin(a))), f.parse(twin(a))) == nil {
				t.Error("the deletion of the ManagedResource leaves the object of the first group")
			}
			f.delete(definitions)
		})
	}
}

// TestContractInventoryOfAnotherVersion: the version is not part of an object's identity.
func TestContractInventoryOfAnotherVersion(t *testing.T) {
	f := newFixture(t)
	scaler := f.here("apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: x, namespace: NS}\n" +
		"spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nope}}\n")
	f.manage("set", scaler)
	f.reconcileOK("set")
	uid := f.object(scaler).GetUID()
	f.requests.writes()
	f.secret("set", "objects.yaml", strings.Replace(scaler, "autoscaling/v1", "autoscaling/v2", 1))
	mr := f.reconcileOK("set")
	if got := f.object(scaler).GetUID(); got != uid {
		t.Error("the object was recreated")
	}
	if got, want := entries(mr), []string{"autoscaling/v2 HorizontalPodAutoscaler " + f.namespace + " x"}; !slices.Equal(got, want) {
		t.Errorf("the inventory is %v, want %v", got, want)
	}
}

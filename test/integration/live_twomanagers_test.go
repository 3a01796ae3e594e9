package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestLiveTwoResourceManagers runs two resource-managers of different classes with different managed-by labels on one
// cluster. Each corrects only its own objects. An object that both want stays unchanged with the first one, until
// that one is deleted.
func TestLiveTwoResourceManagers(t *testing.T) {
	f := newFixture(t)
	const settings = "controllers: {resourceClass: %s, managedResource: {syncPeriod: %s, managedByLabelValue: %s}}\n" + noElection
	first, second := f.newProxy(), f.newProxy()
	f.startIn([]string{f.namespace}, fmt.Sprintf(settings, "resources", "1h", "gardener")+first.asTarget())
	a := f.manage("a", f.configMap("of-a", "a"), f.configMap("both", "a"))
	f.eventuallySucceeded("a")
	before := f.liveConfigMap("both")

	f.startIn([]string{f.namespace}, fmt.Sprintf(settings, "seed", "15s", "seed")+second.asTarget())
	b := f.manageAs("seed", "b", f.configMap("of-b", "b"), f.configMap("both", "b"))
	f.eventuallyApplied("b", resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonApplyFailed)
	wantContains(t, applied(f.read("b")).Message, "ConfigMap "+f.namespace+"/both belongs to ManagedResource", f.namespace+"/a")
	if label := f.liveConfigMap("of-b").Labels[resourcesv1alpha1.LabelManagedBy]; label != "seed" {
		t.Errorf("the managed-by label of the second one is %q", label)
	}

	first.forget()
	second.forget()
	f.eventuallyRestored("of-a", "a")
	f.eventuallyRestored("of-b", "b")
	f.eventuallyRestored("both", "a")
	for writer, writes := range map[string][]string{"of-a": second.writesTo("of-a"), "of-b": first.writesTo("of-b")} {
		if len(writes) > 0 {
			t.Errorf("%s was written by the other resource-manager: %v", writer, writes)
		}
	}
	quiet := f.liveConfigMap("both").ResourceVersion
	f.eventually("the second one has retried", func() bool { return len(second.writesTo("both")) > 0 })
	f.eventuallyRestored("of-a", "a")
	f.eventuallyRestored("of-b", "b")
	f.eventuallyApplied("b", resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonApplyFailed)
	if after := f.wantConfigMap("both", "a"); after.UID != before.UID || after.ResourceVersion != quiet {
		t.Errorf("the object that both want was written: %s %s, was %s %s", after.UID, after.ResourceVersion, before.UID, quiet)
	}

	must(t, f.client.Delete(f.ctx, a))
	f.eventuallyApplied("b", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
	f.wantConfigMap("both", "b")
	f.wantNoConfigMap("of-a")
	must(t, f.client.Delete(f.ctx, b))
	f.eventually("all objects are deleted", func() bool { return f.liveConfigMap("both") == nil && f.liveConfigMap("of-b") == nil })
}

// TestLiveTwoResourceManagersAtOnce makes two resource-managers create the same objects at the same time. Each object
// belongs to one of them, and the other one reports that.
func TestLiveTwoResourceManagersAtOnce(t *testing.T) {
	f := newFixture(t)
	const settings = "controllers: {resourceClass: %s, managedResource: {syncPeriod: 15s, managedByLabelValue: %[1]s}}\n" + noElection
	p := f.newProxy()
	f.startIn([]string{f.namespace}, fmt.Sprintf(settings, "resources")+p.asTarget())
	f.startIn([]string{f.namespace}, fmt.Sprintf(settings, "seed")+p.asTarget())
	var ofA, ofB, names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("both-%d", i))
		ofA, ofB = append(ofA, f.configMap(names[i], "a")), append(ofB, f.configMap(names[i], "b"))
	}
	f.manage("a", ofA...)
	f.manageAs("seed", "b", slices.Concat(ofB[10:], ofB[:10])...)
	concluded := func(name string) bool {
		status := applied(f.read(name)).Status
		return status == resourcesv1alpha1.ConditionTrue || status == resourcesv1alpha1.ConditionFalse
	}
	f.eventually("both are done", func() bool { return concluded("a") && concluded("b") })
	versions := map[string]string{}
	for _, name := range names {
		versions[name] = f.liveConfigMap(name).ResourceVersion
	}
	p.forget()
	f.eventually("the conflicts are retried", func() bool { return len(p.writesTo("both-")) > 0 })
	owned := map[string]int{}
	for _, name := range names {
		object := f.liveConfigMap(name)
		owner := object.Annotations[resourcesv1alpha1.AnnotationOrigin]
		owned[owner]++
		if !strings.HasSuffix(owner, "/"+object.Data["key"]) || object.ResourceVersion != versions[name] {
			t.Errorf("%s of %s holds %q, was %s and is %s", name, owner, object.Data["key"], versions[name], object.ResourceVersion)
		}
	}
	for mine, other := range map[string]string{"a": "b", "b": "a"} {
		message := applied(f.read(mine)).Message
		if got, want := strings.Count(message, "belongs to ManagedResource"), owned[f.namespace+"/"+other]; got != want {
			t.Errorf("%s names %d objects of the other resource-manager, want %d: %s", mine, got, want, message)
		}
	}
}

// manageAs writes a Secret with the given name and a ManagedResource of a class with the same name.
func (f *fixture) manageAs(class, name string, documents ...string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	f.secret(name, "objects.yaml", strings.Join(documents, "\n---\n"))
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = f.namespace, name
	mr.Spec.Class = &class
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: name}}
	must(f, f.client.Create(f.ctx, mr))
	return mr
}

// eventuallyRestored changes a ConfigMap by hand and waits until it has the given value again.
func (f *fixture) eventuallyRestored(name, value string) {
	f.Helper()
	f.patch(f.configMap(name, ""), "kubectl-edit", `{"data":{"key":"by-hand"}}`)
	f.eventually(name+" is restored", func() bool {
		configMap := f.liveConfigMap(name)
		return configMap != nil && configMap.Data["key"] == value
	})
}

// writesTo returns the write requests for objects whose name begins with a text.
func (p *proxy) writesTo(prefix string) []string {
	var writes []string
	for _, question := range p.single() {
		name := question.path[strings.LastIndex(question.path, "/")+1:]
		if question.method != "GET" && strings.HasPrefix(name, prefix) {
			writes = append(writes, question.String())
		}
	}
	return writes
}

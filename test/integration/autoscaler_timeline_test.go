package integration

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// autoscaled is one way to combine a HorizontalPodAutoscaler and a Deployment.
type autoscaled struct {
	// hpa names the source of the autoscaler.
	hpa string
	// first and later are the replicas in the manifest, before and after the first scaling by the autoscaler.
	first, later string
	// want are all replica counts of the Deployment, in order.
	want []int32
}

const (
	hpaBefore = "HPA before the Deployment"
	hpaAfter  = "HPA after the Deployment"
	hpaWithIt = "HPA in the same ManagedResource"

	noReplicas = "\n"
	oneReplica = "\n  replicas: 1\n"
)

// TestAutoscalerTimeline watches the replicas of a Deployment that kube-controller-manager scales for a
// HorizontalPodAutoscaler, while its manifest changes repeatedly. With -v it prints every replica count that was ever
// stored. The count in the manifest is never among them while an autoscaler exists. After the autoscaler is deleted,
// a count in the manifest applies again, as it does with gardener-resource-manager. Without a count in the manifest,
// the last count stays.
func TestAutoscalerTimeline(t *testing.T) {
	for _, hpa := range []string{hpaBefore, hpaAfter, hpaWithIt} {
		for name, a := range map[string]autoscaled{
			"no replicas in the manifest":   {hpa, noReplicas, noReplicas, []int32{1, 3, 7, 4}},
			"replicas 1 in the manifest":    {hpa, oneReplica, oneReplica, []int32{1, 3, 7, 4, 1}},
			"replicas 1 leave it meanwhile": {hpa, oneReplica, noReplicas, []int32{1, 3, 7, 4}},
		} {
			t.Run(hpa+", "+name, func(t *testing.T) {
				t.Parallel() // the test mostly waits for the next sync of kube-controller-manager
				a.run(newFixture(t))
			})
		}
	}
}

func (a autoscaled) run(f *fixture) {
	line := f.watchReplicas()
	image := 0
	reconcile := func(replicas string, withHPA bool) {
		image++
		line.step(fmt.Sprintf("reconcile, image %d", image), func() {
			f.secret("set", a.manifests(f, replicas, image, withHPA)...)
			f.reconcileOK("set")
		})
	}
	createHPA := func() { line.step("create the HPA", func() { f.createObject(f.hpa(), "somebody") }) }

	if a.hpa == hpaBefore {
		createHPA()
	}
	f.managedResource("set", "set")
	reconcile(a.first, true)
	switch a.hpa {
	case hpaAfter:
		createHPA()
	case hpaWithIt:
		reconcile(a.first, true) // the autoscaler might not have scaled yet
	}
	line.step("the HPA scales to its minimum, 3", func() {
		f.eventually("the Deployment is scaled", func() bool { return *f.liveDeployment().Spec.Replicas == 3 })
	})
	reconcile(a.first, true)
	reconcile(a.first, true)
	// Without metrics, the autoscaler scales no further on its own.
	line.step("the HPA scales up to 7", func() { f.scale(7) })
	reconcile(a.first, true)
	reconcile(a.later, true)
	line.step("the HPA scales down to 4", func() { f.scale(4) })
	reconcile(a.later, true)
	line.step("restart the resource-manager", f.restart)
	reconcile(a.later, true)

	line.step("delete the HPA", func() { a.deleteHPA(f, image) })
	reconcile(a.later, false)
	reconcile(a.later, false)
	line.step("restart the resource-manager", f.restart)
	reconcile(a.later, false)
	f.Logf("\n%s", line)
	if got := line.numbers(); !slices.Equal(got, a.want) {
		f.Errorf("the replicas were %v, want %v", got, a.want)
	}
}

// manifests returns keys and values for the Secret.
func (a autoscaled) manifests(f *fixture, replicas string, image int, withHPA bool) []string {
	deployment := strings.Replace(f.web(""), "\nspec:\n", "\nspec:"+replicas, 1)
	documents := []string{"web.yaml", strings.Replace(deployment, "web:1", fmt.Sprintf("web:%d", image), 1)}
	if withHPA && a.hpa == hpaWithIt {
		documents = append(documents, "hpa.yaml", f.hpa())
	}
	return documents
}

func (f *fixture) hpa() string {
	return fmt.Sprintf(`apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: %s}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 10
`, f.namespace)
}

// deleteHPA deletes the autoscaler, or removes it from the manifests if the resource-manager manages it.
func (a autoscaled) deleteHPA(f *fixture, image int) {
	f.Helper()
	if a.hpa != hpaWithIt {
		must(f, f.client.Delete(f.ctx, f.autoscaler()))
		return
	}
	f.secret("set", a.manifests(f, a.later, image, false)...)
	f.reconcileUntil("set", "the HPA is pruned", func(mr *resourcesv1alpha1.ManagedResource) bool {
		f.clock.SetTime(f.clock.Now().Add(time.Second)) // the HPA might move to another ManagedResource
		return len(mr.Status.Resources) == 1
	})
}

// timeline records the Deployment's replicas as a watch reports them, and the steps of the test in between.
type timeline struct {
	f     *fixture
	start time.Time

	mu       sync.Mutex
	text     strings.Builder
	replicas []int32
	// seen are the resource versions that the watch has reported.
	seen map[string]bool
}

// watchReplicas watches the replicas of the Deployment, which must not exist yet.
func (f *fixture) watchReplicas() *timeline {
	f.Helper()
	c, err := client.NewWithWatch(shared.Get(f).Config(), client.Options{Scheme: f.client.Scheme()})
	must(f, err)
	events, err := c.Watch(f.ctx, &appsv1.DeploymentList{}, client.InNamespace(f.namespace))
	must(f, err)
	f.Cleanup(events.Stop)
	line := &timeline{f: f, start: time.Now(), seen: map[string]bool{}}
	go line.record(events.ResultChan())
	return line
}

func (l *timeline) record(events <-chan watch.Event) {
	for event := range events {
		deployment, ok := event.Object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		l.mu.Lock()
		l.seen[deployment.ResourceVersion] = true
		if replicas := *deployment.Spec.Replicas; len(l.replicas) == 0 || l.replicas[len(l.replicas)-1] != replicas {
			l.replicas = append(l.replicas, replicas)
			l.print(fmt.Sprintf("    replicas: %d, owned by %s", replicas, ownerOfReplicas(deployment)))
		}
		l.mu.Unlock()
	}
}

func (l *timeline) print(text string) {
	fmt.Fprintf(&l.text, "%6d ms  %s\n", time.Since(l.start).Milliseconds(), text)
}

// step runs do and waits until the watch has seen the result, so that the output is in order.
func (l *timeline) step(what string, do func()) {
	l.f.Helper()
	l.mu.Lock()
	l.print(what)
	l.mu.Unlock()
	do()
	l.f.eventually("the watch has seen the current Deployment", func() bool {
		deployment := &appsv1.Deployment{}
		err := l.f.client.Get(l.f.ctx, types.NamespacedName{Namespace: l.f.namespace, Name: "web"}, deployment)
		if apierrors.IsNotFound(err) {
			return true
		}
		must(l.f, err)
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.seen[deployment.ResourceVersion]
	})
}

func (l *timeline) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *timeline) numbers() []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.replicas)
}

// ownerOfReplicas returns the field manager that owns the replicas. Kubernetes records no owner for a write by the
// scale subresource if the replicas had no owner before.
func ownerOfReplicas(deployment *appsv1.Deployment) string {
	var owners []string
	for _, entry := range deployment.ManagedFields {
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return err.Error()
		}
		if fields.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
			owners = append(owners, strings.TrimSpace(fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Subresource)))
		}
	}
	if len(owners) == 0 {
		return "nobody"
	}
	return strings.Join(owners, " and ")
}

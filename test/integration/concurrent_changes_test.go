package integration

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// afterList is a reader that calls a function once, after its first list.
type afterList struct {
	client.Reader
	then func()
	once sync.Once
}

func (r *afterList) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	r.once.Do(r.then)
	return err
}

// TestAutoscalerCreatedDuringAReconcile: an autoscaler is created after the manifests were rendered, so they are
// rendered again.
func TestAutoscalerCreatedDuringAReconcile(t *testing.T) {
	f := newFixture(t)
	autoscaler := f.autoscaler()
	*autoscaler.Spec.Metrics[0].Resource.Target.AverageUtilization = 80
	f.reconciler.Autoscalers = &afterList{Reader: f.client, then: func() { must(t, f.client.Create(f.ctx, autoscaler)) }}
	f.manage("set", f.webWithReplicas(3, ""))
	before := f.reconcileOK("set")
	after := f.reconcileOK("set") // triggered by the event of the autoscaler
	if before.Status.Resources[0].Digest == after.Status.Resources[0].Digest {
		t.Error("the replicas are not left to the autoscaler")
	}
	f.scale(7)
	f.reconcileOK("set")
	f.wantReplicas(7)
}

// TestReleaseOfAnObjectTakenOverMeanwhile: the release keeps the marks of the ManagedResource that has since taken
// over the object.
func TestReleaseOfAnObjectTakenOverMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.marked("one", "annotations: {resources.gardener.cloud/mode: Ignore}"))
	var once sync.Once
	f.requests.breakWith(func(request *http.Request) error {
		if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/configmaps/one") {
			once.Do(func() {
				live := f.liveConfigMap("one")
				live.Annotations[resourcesv1alpha1.AnnotationOrigin] = f.namespace + "/other"
				must(t, f.client.Update(f.ctx, live))
			})
		}
		return nil
	})
	f.reconcileOK("set")
	live := f.liveConfigMap("one")
	if live.Annotations[resourcesv1alpha1.AnnotationOrigin] != f.namespace+"/other" || live.Labels[resourcesv1alpha1.LabelManagedBy] == "" {
		t.Errorf("its annotations are %v, its labels %v", live.Annotations, live.Labels)
	}
	if mr := f.read("set"); len(mr.Status.Resources) > 0 {
		t.Errorf("the inventory is %v", mr.Status.Resources)
	}
}

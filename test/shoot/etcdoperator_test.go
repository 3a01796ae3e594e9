package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/podprocess"
)

// etcdKind is the kind of the operator's objects.
var etcdKind = schema.GroupVersionKind{Group: "druid.gardener.cloud", Version: "v1alpha1", Kind: "Etcd"}

// etcdOperator simulates the etcd operator until the test ends. It applies each change immediately.
func (w *world) etcdOperator() {
	w.Helper()
	kit.Answer(w.T, w.seed, w.answer, etcdKind)
}

// answer applies the spec of an Etcd. Failures are retried.
func (w *world) answer(ctx context.Context, etcd *unstructured.Unstructured) {
	annotations := etcd.GetAnnotations()
	if annotations[constants.AnnotationGardenerOperation] != "" {
		delete(annotations, constants.AnnotationGardenerOperation)
		etcd.SetAnnotations(annotations)
		if err := w.seed.Update(ctx, etcd); err != nil {
			return
		}
	}
	if observed, _, _ := unstructured.NestedInt64(etcd.Object, "status", "observedGeneration"); observed == etcd.GetGeneration() {
		return
	}
	_ = w.reportEtcd(ctx, etcd, "") // a failed update is retried
}

// reportEtcd sets the status of an Etcd: everything is healthy, or its members have lost their data.
func (w *world) reportEtcd(ctx context.Context, etcd *unstructured.Unstructured, lost string) error {
	patch, err := json.Marshal(map[string]any{"status": podprocess.EtcdStatus(etcd.GetGeneration(), lost, time.Now())})
	if err != nil {
		return fmt.Errorf("render the status: %w", err)
	}
	return w.seed.Status().Patch(ctx, etcd, client.RawPatch(types.MergePatchType, patch))
}

package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
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
	condition := func(kind, status string) map[string]any {
		at := metav1.Now().UTC().Format(time.RFC3339)
		return map[string]any{"type": kind, "status": status, "reason": "Test", "message": "done", "lastTransitionTime": at, "lastUpdateTime": at}
	}
	ready, errs := "True", []any{}
	if lost != "" {
		ready, errs = "False", []any{map[string]any{"code": "ERR_DATA_LOST", "description": lost, "observedAt": metav1.Now().UTC().Format(time.RFC3339)}}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": etcd.GetGeneration(), "ready": lost == "", "lastErrors": errs,
		"conditions": []any{condition("Ready", ready), condition("AllMembersUpdated", "True")},
	}})
	if err != nil {
		return fmt.Errorf("render the status: %w", err)
	}
	return w.seed.Status().Patch(ctx, etcd, client.RawPatch(types.MergePatchType, patch))
}

package shoot

import (
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// etcdOperator does what the operator of etcd would, until the test ends: it carries out each change at once.
func (w *world) etcdOperator() {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t, ended := w.T, make(chan struct{}) // a part of the test may replace w.T
	w.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		kit.EventuallyWithin(quietly{t, ctx}, kit.Patience*100, "the test ends", func() string {
			if ctx.Err() != nil {
				return ""
			}
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("druid.gardener.cloud/v1alpha1")
			list.SetKind("EtcdList")
			if err := w.seed.List(ctx, list); err != nil {
				return "not listed"
			}
			for i := range list.Items {
				w.answer(ctx, &list.Items[i])
			}
			return "not yet"
		})
	}()
}

// quietly is a test whose failures do not count.
type quietly struct {
	testing.TB
	ctx context.Context
}

func (quietly) Fatalf(string, ...any)      {}
func (quietly) Errorf(string, ...any)      {}
func (q quietly) Context() context.Context { return q.ctx }

// answer carries out the spec of an Etcd. What fails is tried again.
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
	condition := func(kind, status string) map[string]any {
		at := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
		return map[string]any{"type": kind, "status": status, "reason": "Test", "message": "done", "lastTransitionTime": at, "lastUpdateTime": at}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": etcd.GetGeneration(), "conditions": []any{condition("Ready", "True"), condition("AllMembersUpdated", "True")},
	}})
	if err == nil {
		_ = w.seed.Status().Patch(ctx, etcd, client.RawPatch(types.MergePatchType, patch))
	}
}

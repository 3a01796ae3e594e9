package controlplanes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/podprocess"
)

// etcds reports Etcds as ready, in the place of the etcd operator.
type etcds struct{ client client.Client }

func newEtcd() *unstructured.Unstructured {
	etcd := &unstructured.Unstructured{}
	etcd.SetAPIVersion("druid.gardener.cloud/v1alpha1")
	etcd.SetKind("Etcd")
	return etcd
}

// Reconcile reports that the members of an Etcd have its specification.
func (e *etcds) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	etcd := newEtcd()
	if err := e.client.Get(ctx, request.NamespacedName, etcd); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	observed, _, _ := unstructured.NestedInt64(etcd.Object, "status", "observedGeneration")
	_, operation := etcd.GetAnnotations()[constants.AnnotationGardenerOperation]
	if observed == etcd.GetGeneration() && !operation {
		return reconcile.Result{}, nil
	}
	status, err := json.Marshal(map[string]any{"status": podprocess.EtcdStatus(etcd.GetGeneration(), "", time.Now())})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("render the status of Etcd %s: %w", request.NamespacedName, err)
	}
	if err := e.client.Status().Patch(ctx, etcd, client.RawPatch(types.MergePatchType, status)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	done := []byte(`{"metadata":{"annotations":{"` + constants.AnnotationGardenerOperation + `":null}}}`)
	return reconcile.Result{}, client.IgnoreNotFound(e.client.Patch(ctx, etcd, client.RawPatch(types.MergePatchType, done)))
}

package etcd

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
)

// ImageMember is the name of the member image in the list of images.
const ImageMember = "etcd-member"

// Renderer renders Etcds from files, for `kubectl mr render`.
func Renderer() flow.Renderer {
	return flow.Renderer{
		Flow: FlowName, Declares: "Etcds", Plan: planOf, Scheme: scheme.Scheme,
		IsDeclaration: func(u *unstructured.Unstructured) bool {
			return u.GroupVersionKind() == druidv1alpha1.SchemeGroupVersion.WithKind("Etcd")
		},
	}
}

// planOf returns the plan for an Etcd in a file, as if it had been requested. If the files contain its StatefulSet, the
// plan takes it into account.
func planOf(given flow.RenderInputs) (flow.Owner, flow.Plan, error) {
	etcd := &druidv1alpha1.Etcd{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given.Declaration.Object, etcd); err != nil {
		return flow.Owner{}, flow.Plan{}, fmt.Errorf("read the Etcd: %w", err)
	}
	vector, err := images.FromEnvironment()
	if err != nil {
		return flow.Owner{}, flow.Plan{}, err
	}
	image, err := vector.Find(ImageMember, images.Options{})
	if err != nil {
		return flow.Owner{}, flow.Plan{}, err
	}
	in := Inputs{
		Etcd: etcd, Class: given.Class, Version: given.Version, Image: image.Reference, AutoReconcile: true, Now: given.Now,
		Ledger: flow.NewLedger(LedgerKey(keyOf(etcd)), nil),
	}
	for _, other := range given.Others {
		if other.GroupVersionKind() == appsv1.SchemeGroupVersion.WithKind("StatefulSet") &&
			other.GetNamespace() == etcd.Namespace && other.GetName() == etcd.Name {
			in.StatefulSet = &appsv1.StatefulSet{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(other.Object, in.StatefulSet); err != nil {
				return flow.Owner{}, flow.Plan{}, fmt.Errorf("read the StatefulSet: %w", err)
			}
		}
	}
	result, err := Plan(in)
	return OwnerOf(etcd), result.Plan, err
}

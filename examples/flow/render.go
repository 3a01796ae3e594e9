package flow

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Renderer renders sites from files, for `kubectl mr render`.
func Renderer() flow.Renderer {
	return flow.Renderer{
		Flow: FlowName, Declares: "ConfigMaps with the label " + LabelSite + "=true", Plan: planOf, Scheme: scheme.Scheme,
		IsDeclaration: func(u *unstructured.Unstructured) bool {
			return u.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("ConfigMap") && u.GetLabels()[LabelSite] == "true"
		},
	}
}

// planOf returns the plan for a site in a file. Its network is observed if it is in one, too.
func planOf(given flow.RenderInputs) (flow.Owner, flow.Plan, error) {
	var site corev1.ConfigMap
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given.Declaration.Object, &site); err != nil {
		return flow.Owner{}, flow.Plan{}, fmt.Errorf("read the site: %w", err)
	}
	in := Inputs{
		Owner: flow.Owner{Flow: FlowName, UID: site.UID, Namespace: site.Namespace, Name: site.Name},
		Class: given.Class, Version: given.Version, Declared: site.Data, Emitted: given.Emitted, Now: given.Now,
	}
	for _, other := range given.Others {
		if other.GroupVersionKind() == NetworkKind && other.GetNamespace() == site.Namespace && other.GetName() == site.Name {
			in.Network = other
		}
	}
	plan, err := Plan(in)
	return in.Owner, plan, err
}

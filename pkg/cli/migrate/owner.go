package migrate

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Tool is a tool that applies manifests.
type Tool string

// The tools from which objects can be taken over.
const (
	Upstream Tool = "gardener-resource-manager"
	Flux     Tool = "flux"
	Argo     Tool = "argocd"
	Helm     Tool = "helm"
	Kubectl  Tool = "kubectl"
)

// tools are the values of --from.
var tools = []string{string(Upstream), string(Flux), string(Argo), string(Helm), string(Kubectl)}

// Owner is the tool that applied an object, and the tool's own object that the manifest belongs to.
type Owner struct {
	Tool Tool `json:"tool"`
	// Kind, Namespace and Name identify the tool's own object. They are empty if the applied object does not contain
	// them.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String returns the name of the tool and of its object.
func (o Owner) String() string {
	tool := map[Tool]string{Flux: "Flux", Argo: "Argo CD", Helm: "Helm", Kubectl: "kubectl", Upstream: string(Upstream)}[o.Tool]
	switch {
	case o.Name == "":
		return tool
	case o.Namespace == "":
		return fmt.Sprintf("%s (%s %s)", tool, o.Kind, o.Name)
	}
	return fmt.Sprintf("%s (%s %s/%s)", tool, o.Kind, o.Namespace, o.Name)
}

// Labels and annotations that tools set on objects. Sources: Flux, "Kustomization" and "HelmRelease"; Argo CD,
// "Resource Tracking";
// Helm, "Adopting resources".
const (
	kustomizationKey = "kustomize.toolkit.fluxcd.io/"
	helmReleaseKey   = "helm.toolkit.fluxcd.io/"
	trackingKey      = "argocd.argoproj.io/tracking-id"
	instanceKey      = "app.kubernetes.io/instance"
	releaseKey       = "meta.helm.sh/release-"
)

// ownersOf returns the tools that applied an object, by their labels, annotations and owned fields. An object can
// have none or
// several.
func ownersOf(obj *unstructured.Unstructured) []Owner {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	writes := func(managers ...string) bool {
		return slices.ContainsFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Subresource == "" && slices.Contains(managers, entry.Manager)
		})
	}
	var owners []Owner
	if writes("gardener-resource-manager") {
		origin, _ := resourcesv1alpha1.ParseOrigin(annotations[resourcesv1alpha1.AnnotationOrigin])
		owners = append(owners, Owner{Upstream, "ManagedResource", origin.Owner.Namespace, origin.Owner.Name})
	}
	if name := labels[kustomizationKey+"name"]; name != "" || writes("kustomize-controller") {
		owners = append(owners, Owner{Flux, "Kustomization", labels[kustomizationKey+"namespace"], name})
	}
	release := labels[helmReleaseKey+"name"]
	byRelease := release != "" || writes("helm-controller")
	if byRelease {
		owners = append(owners, Owner{Flux, "HelmRelease", labels[helmReleaseKey+"namespace"], release})
	}
	if name := annotations[releaseKey+"name"]; !byRelease && (name != "" || writes("helm")) {
		owners = append(owners, Owner{Helm, "release", annotations[releaseKey+"namespace"], name})
	}
	if id := annotations[trackingKey]; id != "" || writes("argocd-controller", "argocd-application-controller") {
		owners = append(owners, applicationOf(id, labels[instanceKey]))
	}
	if writes("kubectl-client-side-apply", "kubectl") {
		owners = append(owners, Owner{Tool: Kubectl})
	}
	return owners
}

// applicationOf returns the Application of a tracking ID, which begins with NAME or NAMESPACE_NAME. Without an ID, it
// returns the
// Application that the label names.
func applicationOf(id, label string) Owner {
	name := label
	if id != "" {
		name, _, _ = strings.Cut(id, ":")
	}
	namespace, rest, found := strings.Cut(name, "_")
	if !found {
		namespace, rest = "", name
	}
	return Owner{Argo, "Application", namespace, rest}
}

package migrate

import (
	"cmp"
	"fmt"
	"slices"
)

// Predecessor is a tool that currently owns objects, or the tool's object that they belong to, with the required
// steps.
type Predecessor struct {
	Owner
	// Objects is the number of objects that belong to it.
	Objects int `json:"objects"`
	// Steps are the required steps, in order.
	Steps []Step `json:"steps"`
}

// Step is a step of the user.
type Step struct {
	Do string `json:"do"`
	// Command executes the step. It may be empty.
	Command string `json:"command,omitempty"`
}

// argoNamespace is the namespace of Applications, unless their tracking ID names another one.
const argoNamespace = "argocd"

// predecessorsOf collects the owners of objects, and the steps that each of them needs.
func predecessorsOf(reports []report) []Predecessor {
	counts := map[Owner]int{}
	for i := range reports {
		for _, object := range reports[i].Changes {
			for _, owner := range object.Owners {
				if owner.Tool == Upstream { // one program manages all ManagedResources of a namespace
					owner = Owner{Tool: Upstream, Kind: "Deployment", Namespace: owner.Namespace, Name: string(Upstream)}
				}
				counts[owner]++
			}
		}
	}
	var predecessors []Predecessor
	for owner, count := range counts {
		predecessors = append(predecessors, Predecessor{owner, count, stepsOf(owner)})
	}
	slices.SortFunc(predecessors, func(a, b Predecessor) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	return predecessors
}

// stepsOf returns steps that prevent a predecessor from reverting changes of the resource-manager, and from deleting
// objects that it
// no longer manages. Sources: Flux, "Kustomization" (suspend, prune) and "HelmRelease" (suspend); Argo CD, "Automated
// Sync Policy" and
// "App Deletion".
func stepsOf(owner Owner) []Step {
	namespace, name := cmp.Or(owner.Namespace, "NAMESPACE"), cmp.Or(owner.Name, "NAME")
	merge := func(resource, patch string) string {
		return fmt.Sprintf("kubectl patch %s %s -n %s --type merge -p '%s'", resource, name, namespace, patch)
	}
	switch {
	case owner.Tool == Upstream:
		return []Step{
			{"Stop it before the resource-manager starts, and make sure that nothing scales it up again: both would write the same objects.",
				fmt.Sprintf("kubectl scale deployment %s -n %s --replicas 0", name, namespace)},
			{"Do not delete the ManagedResources: that deletes their objects.", ""},
		}
	case owner.Kind == "Kustomization":
		const resource = "kustomizations.kustomize.toolkit.fluxcd.io"
		return []Step{
			{"Suspend it first: while it runs, it reverts the changes of the resource-manager.", merge(resource, `{"spec":{"suspend":true}}`)},
			{"Disable pruning before you delete it or remove the manifests from its source.", merge(resource, `{"spec":{"prune":false}}`)},
		}
	case owner.Kind == "HelmRelease":
		return []Step{
			{"Suspend it first: while it runs, it reverts the changes of the resource-manager.",
				merge("helmreleases.helm.toolkit.fluxcd.io", `{"spec":{"suspend":true}}`)},
			{"Delete it only while it is suspended: otherwise it uninstalls the release and deletes its objects.", ""},
		}
	case owner.Tool == Argo:
		namespace = cmp.Or(owner.Namespace, argoNamespace)
		const resource = "applications.argoproj.io"
		return []Step{
			{"Disable automatic sync first, and do not sync it again: a sync reverts the changes of the resource-manager.",
				merge(resource, `{"spec":{"syncPolicy":{"automated":null}}}`)},
			{"Remove its finalizers before you delete it: with resources-finalizer.argocd.argoproj.io it deletes its objects.",
				merge(resource, `{"metadata":{"finalizers":null}}`)},
		}
	case owner.Tool == Helm:
		return []Step{
			{"Do not upgrade the release again: an upgrade reverts the changes of the resource-manager.", ""},
			{"Do not uninstall it, which deletes its objects. Delete the release records of Helm instead.",
				fmt.Sprintf("kubectl delete secrets -n %s -l owner=helm,name=%s", namespace, name)},
		}
	}
	return []Step{{"Do not apply the manifests with kubectl again, neither manually nor in a pipeline.", ""}}
}

package migrate

import (
	"cmp"
	"fmt"
	"slices"
)

// Predecessor is a tool that owns objects now, or its object that they belong to, and what to do about it.
type Predecessor struct {
	Owner
	// Objects is how many belong to it.
	Objects int `json:"objects"`
	// Steps are what to do, in that order.
	Steps []Step `json:"steps"`
}

// Step is something to do.
type Step struct {
	Do string `json:"do"`
	// Command does it; it may be empty.
	Command string `json:"command,omitempty"`
}

// argoNamespace is where Applications are unless their tracking ID says otherwise.
const argoNamespace = "argocd"

// predecessorsOf gathers the owners of objects, and what is to be done about them.
func predecessorsOf(reports []report) []Predecessor {
	counts := map[Owner]int{}
	for i := range reports {
		for _, object := range reports[i].Changes {
			for _, owner := range object.Owners {
				if owner.Tool == Upstream { // one program cares for all of a namespace
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
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return predecessors
}

// stepsOf returns what keeps a predecessor from putting back what the resource-manager writes, and from deleting what it no longer
// cares for: Flux, "Kustomization" (suspend, prune) and "HelmRelease" (suspend); Argo CD, "Automated Sync Policy" and "App Deletion".
func stepsOf(owner Owner) []Step {
	namespace, name := cmp.Or(owner.Namespace, "NAMESPACE"), cmp.Or(owner.Name, "NAME")
	merge := func(resource, patch string) string {
		return fmt.Sprintf("kubectl patch %s %s -n %s --type merge -p '%s'", resource, name, namespace, patch)
	}
	switch {
	case owner.Tool == Upstream:
		return []Step{
			{"Stop it, also for whoever scales it up again, before the resource-manager starts: both would write the same objects.",
				fmt.Sprintf("kubectl scale deployment %s -n %s --replicas 0", name, namespace)},
			{"Leave the ManagedResources as they are. Whoever deletes them deletes their objects.", ""},
		}
	case owner.Kind == "Kustomization":
		const resource = "kustomizations.kustomize.toolkit.fluxcd.io"
		return []Step{
			{"Suspend it first: as long as it runs, it puts back what the resource-manager changes.", merge(resource, `{"spec":{"suspend":true}}`)},
			{"Have it delete nothing, before it is deleted or the manifests leave its source.", merge(resource, `{"spec":{"prune":false}}`)},
		}
	case owner.Kind == "HelmRelease":
		return []Step{
			{"Suspend it first: as long as it runs, it puts back what the resource-manager changes.",
				merge("helmreleases.helm.toolkit.fluxcd.io", `{"spec":{"suspend":true}}`)},
			{"Delete it only while it is suspended: otherwise it uninstalls the release, and its objects are deleted.", ""},
		}
	case owner.Tool == Argo:
		namespace = cmp.Or(owner.Namespace, argoNamespace)
		const resource = "applications.argoproj.io"
		return []Step{
			{"Switch its automatic sync off first, and sync it no more: it puts back what the resource-manager changes.",
				merge(resource, `{"spec":{"syncPolicy":{"automated":null}}}`)},
			{"Take its finalizers off before it is deleted: by resources-finalizer.argocd.argoproj.io it deletes its objects.",
				merge(resource, `{"metadata":{"finalizers":null}}`)},
		}
	case owner.Tool == Helm:
		return []Step{
			{"Upgrade the release no more: that puts back what the resource-manager changes.", ""},
			{"Do not uninstall it, which deletes its objects. Delete what Helm remembers of it instead.",
				fmt.Sprintf("kubectl delete secrets -n %s -l owner=helm,name=%s", namespace, name)},
		}
	}
	return []Step{{"Apply the manifests with kubectl no more, neither by hand nor in a pipeline.", ""}}
}

package migrate

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// entry returns a managed fields entry of a manager.
func entry(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Subresource: subresource,
		FieldsV1: &metav1.FieldsV1{},
	}
	entry.FieldsV1.SetRawBytes([]byte(fields))
	return entry
}

func TestOwnersOf(t *testing.T) {
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		managers            []string
		want                []Owner
	}{
		"nobody":    {managers: []string{"kube-controller-manager"}, labels: map[string]string{instanceKey: "shop"}},
		"ourselves": {managers: []string{"resource-manager"}},
		"gardener-resource-manager": {managers: []string{"gardener-resource-manager"}, annotations: map[string]string{"resources.gardener.cloud/origin": "seed:garden/shop"},
			want: []Owner{{Upstream, "ManagedResource", "garden", "shop"}}},
		"a Kustomization": {labels: map[string]string{kustomizationKey + "name": "shop", kustomizationKey + "namespace": "flux-system"},
			want: []Owner{{Flux, "Kustomization", "flux-system", "shop"}}},
		"Flux without its labels": {managers: []string{"kustomize-controller"}, want: []Owner{{Flux, "Kustomization", "", ""}}},
		"a HelmRelease": {managers: []string{"helm-controller"}, labels: map[string]string{helmReleaseKey + "name": "shop", helmReleaseKey + "namespace": "apps"},
			annotations: map[string]string{releaseKey + "name": "shop", releaseKey + "namespace": "apps"}, want: []Owner{{Flux, "HelmRelease", "apps", "shop"}}},
		"Helm": {managers: []string{"helm"}, annotations: map[string]string{releaseKey + "name": "shop", releaseKey + "namespace": "apps"},
			want: []Owner{{Helm, "release", "apps", "shop"}}},
		"Argo CD by annotation": {annotations: map[string]string{trackingKey: "shop:apps/Deployment:shop/web"}, labels: map[string]string{instanceKey: "chart"},
			want: []Owner{{Argo, "Application", "", "shop"}}},
		"Argo CD elsewhere": {annotations: map[string]string{trackingKey: "team_shop:apps/Deployment:shop/web"}, want: []Owner{{Argo, "Application", "team", "shop"}}},
		"Argo CD by label":  {managers: []string{"argocd-controller"}, labels: map[string]string{instanceKey: "shop"}, want: []Owner{{Argo, "Application", "", "shop"}}},
		"two":               {managers: []string{"kubectl-client-side-apply", "helm"}, want: []Owner{{Helm, "release", "", ""}, {Tool: Kubectl}}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			obj.SetLabels(test.labels)
			obj.SetAnnotations(test.annotations)
			var entries []metav1.ManagedFieldsEntry
			for _, manager := range test.managers {
				entries = append(entries, entry(manager, "", `{}`))
			}
			obj.SetManagedFields(append(entries, entry("kubectl", "status", `{}`)))
			if got := ownersOf(obj); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestHandoverOf(t *testing.T) {
	before := []metav1.ManagedFieldsEntry{
		entry("helm", "", `{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:old":{}}},"f:spec":{"f:replicas":{},"f:type":{}}}`),
		entry("kubectl-edit", "", `{"f:spec":{"f:extra":{}}}`),
		entry("kube-scheduler", "", `{"f:spec":{"f:size":{}}}`),
		entry("helm", "status", `{"f:status":{"f:x":{}}}`),
	}
	after := []metav1.ManagedFieldsEntry{
		entry("resource-manager", "", `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:type":{}}}`),
		entry("helm", "", `{"f:spec":{"f:replicas":{}}}`),
		entry("kube-scheduler", "", `{"f:spec":{"f:size":{}}}`),
		entry("helm", "status", `{"f:status":{"f:x":{}}}`),
	}
	got, err := handoverOf(before, after, fieldowner.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	want := Handover{
		Managers: []Manager{{"helm", "Update", 4, []string{".spec.replicas"}}, {"kubectl-edit", "Update", 1, nil}, {"kube-scheduler", "Update", 1, nil}},
		Taken:    2, Removed: []string{".metadata.labels.old", ".spec.extra"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	deep := entry("helm", "", strings.Repeat(`{"f:a":`, 100_000)+"{}"+strings.Repeat("}", 100_000))
	if _, err := handoverOf([]metav1.ManagedFieldsEntry{deep}, nil, fieldowner.DefaultPolicy()); err == nil {
		t.Error("fields that are nested too deeply are accepted")
	}
}

func TestPredecessorsOf(t *testing.T) {
	owners := []Owner{
		{Upstream, "ManagedResource", "garden", "a"}, {Upstream, "ManagedResource", "garden", "b"}, {Flux, "Kustomization", "flux-system", "shop"},
		{Flux, "HelmRelease", "apps", "shop"}, {Argo, "Application", "", "shop"}, {Argo, "Application", "team", "shop"}, {Helm, "release", "apps", "shop"}, {Tool: Kubectl},
	}
	var changes []object
	for _, owner := range owners {
		changes = append(changes, object{Entry: preview.Entry{}, Owners: []Owner{owner}})
	}
	var commands []string
	for _, predecessor := range predecessorsOf([]report{{Changes: changes}}) {
		for _, step := range predecessor.Steps {
			if step.Command != "" {
				commands = append(commands, step.Command)
			}
		}
		if wanted := map[bool]int{true: 2, false: 1}[predecessor.Tool == Upstream]; predecessor.Objects != wanted {
			t.Errorf("%s: %d objects, want %d", predecessor, predecessor.Objects, wanted)
		}
	}
	want := []string{
		`kubectl patch applications.argoproj.io shop -n argocd --type merge -p '{"spec":{"syncPolicy":{"automated":null}}}'`,
		`kubectl patch applications.argoproj.io shop -n argocd --type merge -p '{"metadata":{"finalizers":null}}'`,
		`kubectl patch applications.argoproj.io shop -n team --type merge -p '{"spec":{"syncPolicy":{"automated":null}}}'`,
		`kubectl patch applications.argoproj.io shop -n team --type merge -p '{"metadata":{"finalizers":null}}'`,
		`kubectl patch helmreleases.helm.toolkit.fluxcd.io shop -n apps --type merge -p '{"spec":{"suspend":true}}'`,
		`kubectl patch kustomizations.kustomize.toolkit.fluxcd.io shop -n flux-system --type merge -p '{"spec":{"suspend":true}}'`,
		`kubectl patch kustomizations.kustomize.toolkit.fluxcd.io shop -n flux-system --type merge -p '{"spec":{"prune":false}}'`,
		`kubectl scale deployment gardener-resource-manager -n garden --replicas 0`,
		`kubectl delete secrets -n apps -l owner=helm,name=shop`,
	}
	if !slices.Equal(commands, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(commands, "\n"), strings.Join(want, "\n"))
	}
}

package project

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
)

// quota returns a ResourceQuota with a label, an annotation, and limits by resource.
func quota(label, annotation string, limits map[corev1.ResourceName]string) *corev1.ResourceQuota {
	made := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: "1"}, Annotations: map[string]string{annotation: "1"}}}
	made.Spec.Hard = corev1.ResourceList{}
	for name, limit := range limits {
		made.Spec.Hard[name] = resource.MustParse(limit)
	}
	return made
}

func TestQuotaOf(t *testing.T) {
	small, large := quota("small", "", nil), quota("large", "", nil)
	selecting := func(values map[string]string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: values}
	}
	for name, test := range map[string]struct {
		configured []v1alpha1.QuotaConfiguration
		labels     map[string]string
		want       *corev1.ResourceQuota
		fails      bool
	}{
		"none configured": {},
		"all selected":    {configured: []v1alpha1.QuotaConfiguration{{Config: small, ProjectSelector: selecting(nil)}}, want: small},
		"first match": {configured: []v1alpha1.QuotaConfiguration{
			{Config: large, ProjectSelector: selecting(map[string]string{"size": "large"})}, {Config: small, ProjectSelector: selecting(nil)},
		}, labels: map[string]string{"size": "large"}, want: large},
		"second match": {configured: []v1alpha1.QuotaConfiguration{
			{Config: large, ProjectSelector: selecting(map[string]string{"size": "large"})}, {Config: small, ProjectSelector: selecting(nil)},
		}, want: small},
		"no match": {configured: []v1alpha1.QuotaConfiguration{{Config: large, ProjectSelector: selecting(map[string]string{"size": "large"})}}},
		"invalid": {configured: []v1alpha1.QuotaConfiguration{{Config: large, ProjectSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}},
		}}}, fails: true},
	} {
		project := dev()
		project.Labels = test.labels
		if got, err := quotaOf(project, test.configured); got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %v, error %v", name, got, err)
		}
	}
}

func TestMergeQuota(t *testing.T) {
	const shoots, secrets, pods = "count/shoots.core.gardener.cloud", "count/secrets", "pods"
	configured := quota("b", "b", map[corev1.ResourceName]string{shoots: "100", secrets: "400"})
	made, changed := mergeQuota(dev(), configured, nil)
	if !changed || made.Name != "gardener" || made.Namespace != namespaceOf(dev()) || len(made.Spec.Hard) != 2 || len(made.OwnerReferences) != 1 {
		t.Errorf("the new quota is %+v", made)
	}
	if again, changed := mergeQuota(dev(), configured, made); changed {
		t.Errorf("an equal quota is written again: %+v", again)
	}
	present := quota("a", "a", map[corev1.ResourceName]string{shoots: "250", pods: "1"})
	present.ResourceVersion = "7"
	merged, changed := mergeQuota(dev(), configured, present)
	limit := func(name corev1.ResourceName) string { value := merged.Spec.Hard[name]; return value.String() }
	if !changed || merged.ResourceVersion != "7" || len(merged.Spec.Hard) != 2 || limit(shoots) != "250" || limit(secrets) != "400" ||
		len(merged.Labels) != 2 || len(merged.Annotations) != 2 {
		t.Errorf("the merged quota is %+v", merged)
	}
	if len(present.Spec.Hard) != 2 || len(present.Labels) != 1 {
		t.Errorf("the cached quota has changed: %+v", present)
	}
}

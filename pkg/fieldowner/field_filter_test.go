package fieldowner

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const deploymentFields = `{"f:metadata":{"f:annotations":{"f:a":{}},"f:labels":{"f:app":{},"f:resources.gardener.cloud/managed-by":{}}},` +
	`"f:spec":{"f:selector":{},"f:strategy":{"f:type":{}},"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":` +
	`{"k:{\"name\":\"we\\\"b\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:replicas":{}}}}}}}}}`

func TestFieldFilter(t *testing.T) {
	filter := FieldFilterOf([]byte(deploymentFields))
	for _, pattern := range []Pattern{
		{"spec"}, {"spec", "template"}, {"spec", "selector"}, {"metadata", "labels", "app"}, {"spec", "*"}, {"*"},
		{"spec", "selector", "matchLabels", "part of what is owned as a whole"},
		{"spec", "template", "spec", "replicas"}, // deeper than the filter distinguishes
	} {
		if !filter.MayHave(pattern) {
			t.Errorf("MayHave(%v) is false, want true", pattern)
		}
	}
	for _, pattern := range []Pattern{
		{"spec", "replicas"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"}, {"status"},
		{"spec", "volumeClaimTemplates"}, {"data", "*"},
	} {
		if filter.MayHave(pattern) {
			t.Errorf("MayHave(%v) is true, want false", pattern)
		}
	}
	serviceAccount := FieldFilterOf([]byte(`{"f:automountServiceAccountToken":{},"f:metadata":{"f:annotations":{"f:a":{}},"f:labels":{"f:b":{}}}}`))
	if serviceAccount.MayHave(Pattern{"secrets"}) || serviceAccount.MayHave(Pattern{"imagePullSecrets"}) {
		t.Error("MayHave is true for the secrets of a ServiceAccount")
	}
	if (FieldFilter{}).MayHave(Replicas()) {
		t.Error("an empty filter may have replicas")
	}
}

func TestFieldFilterOfWhatCannotBeRead(t *testing.T) {
	for _, fields := range []string{``, `{`, `[]`, `{"f:a"}`, `{"f:a":1}`, `{"f:a":{},}`, `{"f:a":{}`, `{"f:a`, `{"f:a\`, `{"f:a":{}"f:b":{}}`} {
		if filter := FieldFilterOf([]byte(fields)); filter != matchesAll {
			t.Errorf("%s: the filter is %x", fields, filter)
		}
	}
	if filter := FieldFilterOf([]byte(" { \"f:data\" : { \"f:a\" : { } } } ")); !filter.MayHave(Pattern{"data", "a"}) || filter.MayHave(Replicas()) {
		t.Errorf("with spaces, the filter is %x", filter)
	}
}

func TestHasTemplateWithout(t *testing.T) {
	entry := func(fields, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource}
	}
	const label = "example.org/l"
	labelled := `{"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:example.org/l":{}}}}}}`
	cronJob := `{"f:spec":{"f:jobTemplate":{"f:spec":{"f:template":{"f:spec":{}}}}}}`
	labelledCronJob := `{"f:spec":{"f:jobTemplate":{"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:example.org/l":{}}}}}}}}`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"nothing is known":         {nil, false},
		"no template":              {[]metav1.ManagedFieldsEntry{entry(`{"f:data":{"f:template":{}}}`, "")}, false},
		"a template":               {[]metav1.ManagedFieldsEntry{entry(deploymentFields, "")}, true},
		"a labelled one":           {[]metav1.ManagedFieldsEntry{entry(labelled, "")}, false},
		"labelled by another":      {[]metav1.ManagedFieldsEntry{entry(deploymentFields, ""), entry(labelled, "")}, false},
		"labelled, then by others": {[]metav1.ManagedFieldsEntry{entry(labelled, ""), entry(deploymentFields, "")}, false},
		"that of a CronJob":        {[]metav1.ManagedFieldsEntry{entry(cronJob, "")}, true},
		"a labelled CronJob":       {[]metav1.ManagedFieldsEntry{entry(labelledCronJob, "")}, false},
		"status":                   {[]metav1.ManagedFieldsEntry{entry(deploymentFields, "status")}, false},
	} {
		if got := HasTemplateWithout(test.entries, label); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

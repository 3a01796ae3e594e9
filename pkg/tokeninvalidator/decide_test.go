package tokeninvalidator

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	purposeLabel  = "resources.gardener.cloud/purpose"
	considerLabel = "token-invalidator.resources.gardener.cloud/consider"
	skipLabel     = "token-invalidator.resources.gardener.cloud/skip"
)

func TestUnwanted(t *testing.T) {
	for name, test := range map[string]struct {
		automount *bool
		labels    map[string]string
		want      bool
	}{
		"nothing said":           {nil, nil, false},
		"true":                   {ptr.To(true), nil, false},
		"false":                  {ptr.To(false), nil, true},
		"false, other labels":    {ptr.To(false), map[string]string{"a": skipLabel}, true},
		"false, skipped":         {ptr.To(false), map[string]string{skipLabel: "true"}, false},
		"false, skipped: false":  {ptr.To(false), map[string]string{skipLabel: "false"}, false},
		"false, skipped: empty":  {ptr.To(false), map[string]string{skipLabel: ""}, false},
		"nothing said, skipped":  {nil, map[string]string{skipLabel: "true"}, false},
		"false, key of a Secret": {ptr.To(false), map[string]string{considerLabel: "true"}, true},
	} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}, AutomountServiceAccountToken: test.automount}
		if got := unwanted(account); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestDecide(t *testing.T) {
	marked := map[string]string{purposeLabel: "token-invalidator"}
	labelled := map[string]string{purposeLabel: "token-invalidator", considerLabel: "true"}
	for name, test := range map[string]struct {
		labels         map[string]string
		unwanted, used bool
		want           verdict
		change         map[string]string // "-" removes
	}{
		"new, wanted":                     {nil, false, false, rest, map[string]string{purposeLabel: "token-invalidator"}},
		"new, unwanted":                   {nil, true, false, invalidate, map[string]string{purposeLabel: "token-invalidator", considerLabel: "true"}},
		"new, unwanted, used":             {nil, true, true, inUse, map[string]string{purposeLabel: "token-invalidator"}},
		"marked, wanted":                  {marked, false, true, rest, nil},
		"marked, unwanted":                {marked, true, false, invalidate, map[string]string{considerLabel: "true"}},
		"marked, unwanted, used":          {marked, true, true, inUse, nil},
		"labelled, unwanted":              {labelled, true, false, rest, nil},
		"labelled, unwanted, used":        {labelled, true, true, rest, nil},
		"labelled, wanted":                {labelled, false, false, restore, map[string]string{considerLabel: "-"}},
		"labelled, wanted, used":          {labelled, false, true, restore, map[string]string{considerLabel: "-"}},
		"considered alone, unwanted":      {map[string]string{considerLabel: "true"}, true, false, rest, map[string]string{purposeLabel: "token-invalidator"}},
		"considered alone, wanted":        {map[string]string{considerLabel: "true"}, false, false, restore, map[string]string{purposeLabel: "token-invalidator", considerLabel: "-"}},
		"considered: another value":       {map[string]string{purposeLabel: "token-invalidator", considerLabel: "x"}, true, false, rest, nil},
		"other purpose, wanted":           {map[string]string{purposeLabel: "x"}, false, false, rest, nil},
		"other purpose, unwanted":         {map[string]string{purposeLabel: "x"}, true, false, foreign, nil},
		"other purpose, unwanted, used":   {map[string]string{purposeLabel: "x"}, true, true, foreign, nil},
		"empty purpose, unwanted":         {map[string]string{purposeLabel: ""}, true, false, foreign, nil},
		"other purpose, labelled, wanted": {map[string]string{purposeLabel: "x", considerLabel: "true"}, false, false, foreign, nil},
	} {
		before := maps.Clone(test.labels)
		got := decide(test.labels, test.unwanted, test.used)
		change := map[string]string{}
		for key, value := range got.labels {
			change[key] = ptr.Deref(value, "-")
		}
		if got.verdict != test.want || !maps.Equal(change, test.change) {
			t.Errorf("%s: got verdict %d and the change %v", name, got.verdict, change)
		}
		if !maps.Equal(before, test.labels) {
			t.Errorf("%s: the input was changed", name)
		}
		// After the labels are changed, only waiting remains.
		after := maps.Clone(test.labels)
		for key, value := range got.labels {
			if value == nil {
				delete(after, key)
				continue
			}
			if after == nil {
				after = map[string]string{}
			}
			after[key] = *value
		}
		again := decide(after, test.unwanted, test.used)
		if len(again.labels) > 0 || (again.verdict != rest && again.verdict != got.verdict) {
			t.Errorf("%s: the second decision has verdict %d and the change %v", name, again.verdict, again.labels)
		}
	}
}

func secretVolume(name string, keys ...string) corev1.Volume {
	source := &corev1.SecretVolumeSource{SecretName: name}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key})
	}
	return corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: source}}
}

func projection(name string, keys ...string) corev1.VolumeProjection {
	source := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key})
	}
	return corev1.VolumeProjection{Secret: source}
}

func variableOf(name, key string) corev1.EnvVar {
	return corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key,
	}}}
}

func variablesOf(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func TestUsedSecrets(t *testing.T) {
	spec := corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		Volumes: []corev1.Volume{
			secretVolume("volume"), secretVolume("item", "ca.crt", "token"), secretVolume("other-item", "ca.crt"), secretVolume("twice"), {},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "driver"}}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				projection("projected"), projection("projected-item", "token"), projection("other-projected", "namespace"), projection("twice"),
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
			}}}},
		},
		InitContainers: []corev1.Container{{Env: []corev1.EnvVar{variableOf("init", "token"), variableOf("other-init", "ca.crt"), {Value: "a"}}}},
		Containers: []corev1.Container{
			{Env: []corev1.EnvVar{variableOf("env", "token"), {ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}}},
			{EnvFrom: []corev1.EnvFromSource{variablesOf("env-from"), {ConfigMapRef: &corev1.ConfigMapEnvSource{}}}},
		},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			EnvFrom: []corev1.EnvFromSource{variablesOf("ephemeral")},
		}}},
	}
	want := []string{"env", "env-from", "ephemeral", "init", "item", "projected", "projected-item", "twice", "volume"}
	if got := usedSecrets(&spec); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// The cache keeps only these.
	pod := keepUsedSecrets(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}, Spec: spec})
	if !slices.Equal(usedBy(pod), want) || len(pod.Spec.Containers) != 0 || pod.Labels != nil || pod.Name != "a" {
		t.Errorf("the cache keeps %+v", pod)
	}
	if got := usedSecrets(&corev1.PodSpec{}); len(got) != 0 {
		t.Errorf("a Pod without anything uses %q", got)
	}
}

func TestSome(t *testing.T) {
	for want, names := range map[string][]string{
		"a": {"a"}, "a, b, c, d, e": {"a", "b", "c", "d", "e"}, "a, b, c, d, e and 2 more": {"a", "b", "c", "d", "e", "f", "g"},
	} {
		if got := some(names); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

package netpol

import (
	"path/filepath"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// TestGolden covers every example and every table row of the documents. The end-to-end tests create the same manifests.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.want.yaml")
	must(t, err)
	if len(files) < 20 {
		t.Fatalf("found only %d files", len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".want.yaml")
		t.Run(name, func(t *testing.T) {
			got, problems := map[types.NamespacedName]string{}, ""
			w := readWorld(t, filepath.Join("testdata", name+".yaml"))
			for _, service := range w.services {
				result := w.desired(service)
				for _, policy := range result.Policies {
					got[types.NamespacedName{Namespace: policy.Namespace, Name: policy.Name}] = text(t, policy)
				}
				problems += problemsText(result.Problems)
			}
			for _, document := range documents(t, file) {
				if document.GetKind() == "Problems" {
					if want, _ := document.Object["text"].(string); strings.TrimSpace(want) != strings.TrimSpace(problems) {
						t.Errorf("got the problems\n%s\nwant\n%s", problems, want)
					}
					problems = ""
					continue
				}
				key := types.NamespacedName{Namespace: document.GetNamespace(), Name: document.GetName()}
				if want := text(t, into[networkingv1.NetworkPolicy](t, document)); got[key] != want {
					t.Errorf("got\n%s\nwant\n%s", got[key], want)
				}
				delete(got, key)
			}
			for key := range got {
				t.Errorf("got an unexpected policy: %s", key)
			}
			if problems != "" {
				t.Errorf("got unexpected problems:\n%s", problems)
			}
		})
	}
}

func problemsText(problems []Problem) string {
	text := ""
	for _, problem := range problems {
		text += problem.Reason + ": " + problem.Message + "\n"
	}
	return text
}

func text(t *testing.T, policy *networkingv1.NetworkPolicy) string {
	t.Helper()
	policy = policy.DeepCopy()
	policy.APIVersion, policy.Kind = "networking.k8s.io/v1", "NetworkPolicy"
	content, err := yaml.Marshal(policy)
	must(t, err)
	return string(content)
}

package preview

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestHunks(t *testing.T) {
	a := strings.Split("1 2 3 4 5 6 7 8 9 10 11 12 13 14", " ")
	b := slices.Clone(a)
	b[1], b[12] = "two", "thirteen"
	want := "@ -1 +1 @@|  1| -2| +two|  3|  4|  5|@ -10 +10 @@|  10|  11|  12| -13| +thirteen|  14"
	var got []string
	for _, line := range hunks(script(a, b)) {
		text := " " + string(rune(line.Sign)) + line.Text
		if line.Sign == '@' {
			text = line.Text
		}
		got = append(got, text)
	}
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestScript checks that the lines that are not added are the first text, and the lines that are not removed are the second
// text.
func TestScript(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() []string {
		lines := make([]string, random.IntN(12))
		for i := range lines {
			lines[i] = string(rune('a' + random.IntN(4)))
		}
		return lines
	}
	for range 2000 {
		a, b := text(), text()
		var before, after []string
		for _, line := range script(a, b) {
			if line.Sign != '+' {
				before = append(before, line.Text)
			}
			if line.Sign != '-' {
				after = append(after, line.Text)
			}
		}
		if !slices.Equal(before, a) || !slices.Equal(after, b) {
			t.Fatalf("%v to %v: %v", a, b, script(a, b))
		}
	}
}

func TestCompareHidesSecrets(t *testing.T) {
	secret := func(value, revision string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": "x", "resourceVersion": revision, "annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": value,
			}},
			"data": map[string]any{"password": value, "same": "c2FtZQ=="},
		}}
	}
	lines, err := Compare(secret("b2xk", "1"), secret("bmV3", "2"))
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(lines)
	for _, hidden := range []string{"b2xk", "bmV3", "c2FtZQ=="} {
		if strings.Contains(text, hidden) {
			t.Errorf("%s is shown:\n%s", hidden, text)
		}
	}
	if !strings.Contains(text, "-  password: '*** (before)'\n+  password: '*** (after)'\n") {
		t.Errorf("the changed field is missing:\n%s", text)
	}
	if lines, err := Compare(secret("b2xk", "1"), secret("b2xk", "2")); err != nil || len(lines) > 0 {
		t.Errorf("fields that only the API server sets are shown: %v, %v", lines, err)
	}
}

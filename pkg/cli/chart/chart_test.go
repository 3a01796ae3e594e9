package chart

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// basic has the files of a chart with a definition, a dependency, a hook, notes and a helper.
var basic = map[string]string{
	"Chart.yaml":             "apiVersion: v2\nname: shop\nversion: 1.0.0\nkubeVersion: '>=1.20.0-0'\ndependencies: [{name: cart, version: 1.x.x, condition: cart.enabled}]\n",
	"values.yaml":            "colour: blue\nreplicas: 1\ncart: {enabled: true}\n",
	"values.schema.json":     `{"properties": {"replicas": {"type": "integer", "maximum": 5}}}`,
	"crds/coupon.yaml":       "kind: CustomResourceDefinition\nname: {{ not a template }}\n",
	"templates/_helpers.tpl": `{{ define "name" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}`,
	"templates/NOTES.txt":    "Thank you for {{ .Release.Name }}.",
	"templates/empty.yaml":   "{{ if false }}kind: X{{ end }}\n",
	"templates/a.yaml": "name: {{ include \"name\" . }}\nnamespace: {{ .Release.Namespace }}\ncolour: {{ .Values.colour }}\nreplicas: {{ .Values.replicas }}\n" +
		"kube: {{ .Capabilities.KubeVersion.Minor }}\nmonitored: {{ .Capabilities.APIVersions.Has \"monitoring.coreos.com/v1\" }}\n---apps: glued\n",
	"charts/cart/Chart.yaml":          "apiVersion: v2\nname: cart\nversion: 1.2.3\n",
	"charts/cart/templates/cart.yaml": "kind: Cart\n",
	"charts/cart/crds/cart.yaml":      "kind: CustomResourceDefinition\n",
}

// write writes the basic chart with some changed files. A file with empty content is omitted.
func write(t *testing.T, differ map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	files := map[string]string{}
	for _, some := range []map[string]string{basic, differ} {
		for name, content := range some {
			files[name] = content
		}
	}
	for name, content := range files {
		path := filepath.Join(folder, name)
		if content == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// compress packs a chart into an archive.
func compress(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop-1.0.0.tgz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip := gzip.NewWriter(file)
	writer := tar.NewWriter(zip)
	err = filepath.Walk(folder, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		if err := writer.WriteHeader(&tar.Header{Name: "shop/" + filepath.ToSlash(relative), Size: int64(len(content)), Mode: 0o600}); err != nil {
			return err
		}
		_, err = writer.Write(content)
		return err
	})
	for _, failure := range []error{err, writer.Close(), zip.Close()} {
		if failure != nil {
			t.Fatal(failure)
		}
	}
	return path
}

func TestRender(t *testing.T) {
	settings := Settings{Release: "my", Namespace: "garden", KubeVersion: "1.33", APIVersions: []string{"monitoring.coreos.com/v1"}}
	values := Values{}
	for _, err := range []error{
		values.AddFile(File{"values.yaml", "colour: red\nreplicas: 2\n"}), values.AddFile(File{"more.yaml", "colour: green\n"}),
		values.Assign("replicas=3"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	settings.Values = values
	folder := write(t, nil)
	rendered, err := Render(t.Context(), folder, settings)
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		{"shop/crds/coupon.yaml", basic["crds/coupon.yaml"]},
		{"shop/charts/cart/crds/cart.yaml", "kind: CustomResourceDefinition\n"},
		{"shop/charts/cart/templates/cart.yaml", "kind: Cart\n"},
		{"shop/templates/a.yaml", "name: my-shop\nnamespace: garden\ncolour: green\nreplicas: 3\nkube: 33\nmonitored: true\n\n---\napps: glued\n"},
	}
	if !slices.Equal(rendered.Files, want) || rendered.LooksUp {
		t.Errorf("got %q, want %q", rendered.Files, want)
	}
	packed, err := Render(t.Context(), compress(t, folder), settings)
	if err != nil || !slices.Equal(packed.Files, rendered.Files) {
		t.Errorf("the archive is rendered as %+v, %v", packed, err)
	}
	settings.Values = Values{"cart": map[string]any{"enabled": false}}
	without, err := Render(t.Context(), folder, settings)
	if err != nil || len(without.Files) != 2 {
		t.Errorf("without its dependency: %+v, %v", without, err)
	}
}

// TestRenderStarter renders the chart that `helm create` generates, because most charts started from it.
func TestRenderStarter(t *testing.T) {
	path, err := chartutil.Create("web", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := Render(t.Context(), path, Settings{Release: "my", Values: Values{"ingress": map[string]any{"enabled": true}}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range rendered.Files {
		names = append(names, strings.TrimPrefix(file.Name, "web/templates/"))
	}
	want := []string{"deployment.yaml", "ingress.yaml", "service.yaml", "serviceaccount.yaml", "tests/test-connection.yaml"}
	if !slices.Equal(names, want) || !strings.Contains(rendered.Files[0].Content, "name: my-web\n") || !Is(path) || Is(t.TempDir()) {
		t.Errorf("got %q, want %q:\n%s", names, want, rendered.Files[0].Content)
	}
}

func TestRender_ReportsLookup(t *testing.T) {
	folder := write(t, map[string]string{"templates/b.yaml": `found: {{ len (lookup "v1" "Secret" "garden" "x") }}`})
	rendered, err := Render(t.Context(), folder, Settings{Release: "my"})
	if err != nil || !rendered.LooksUp || rendered.Files[len(rendered.Files)-1].Content != "found: 0" {
		t.Errorf("got %+v, %v", rendered, err)
	}
}

func TestRenderRefuses(t *testing.T) {
	const metadata = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"
	for name, test := range map[string]struct {
		files    map[string]string
		settings Settings
		want     []string
	}{
		"no chart":             {files: map[string]string{"Chart.yaml": ""}, want: []string{"is not a valid chart", "Chart.yaml file is missing"}},
		"bad metadata":         {files: map[string]string{"Chart.yaml": "name: [\n"}, want: []string{"is not a valid chart", "Chart.yaml"}},
		"a library":            {files: map[string]string{"Chart.yaml": metadata + "type: library\n"}, want: []string{"is a library chart"}},
		"a missing dependency": {files: map[string]string{"charts/cart/Chart.yaml": "", "charts/cart/templates/cart.yaml": "", "charts/cart/crds/cart.yaml": ""}, want: []string{"are missing in its folder charts/", "cart", "helm dependency build"}},
		"the schema":           {settings: Settings{Values: Values{"replicas": 6}}, want: []string{"invalid values for the chart", "/replicas", "maximum"}},
		"the version":          {settings: Settings{KubeVersion: "1.19.3"}, want: []string{"requires Kubernetes >=1.20.0-0, not v1.19.3", "--kube-version"}},
		"no version":           {settings: Settings{KubeVersion: "new"}, want: []string{"--kube-version"}},
		"the release":          {settings: Settings{Release: "My_Shop"}, want: []string{`invalid release name "My_Shop"`, "--release-name"}},
		"no template":          {files: map[string]string{"templates/b.yaml": "a: b\nc: {{ if }}\n"}, want: []string{"shop/templates/b.yaml:2"}},
		"a failing template":   {files: map[string]string{"templates/b.yaml": "a: b\n\nc: {{ .Values.x.y }}\n"}, want: []string{"shop/templates/b.yaml:3", "nil pointer"}},
		"what is required":     {files: map[string]string{"templates/b.yaml": "a: b\nc: {{ required \"say how many\" .Values.many }}\n"}, want: []string{"shop/templates/b.yaml:2", "say how many"}},
		"a large chart":        {files: map[string]string{"README.md": strings.Repeat("x", 100_001)}, want: []string{"is not a valid chart", "maximum"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a large chart" {
				before := archive.MaxDecompressedChartSize
				archive.MaxDecompressedChartSize = 100_000
				t.Cleanup(func() { archive.MaxDecompressedChartSize = before })
			}
			if test.settings.Release == "" {
				test.settings.Release = "my"
			}
			_, err := Render(t.Context(), write(t, test.files), test.settings)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q: %v", want, err)
				}
			}
		})
	}
	if _, err := Render(t.Context(), filepath.Join(t.TempDir(), "nowhere"), Settings{Release: "my"}); err == nil || !strings.Contains(err.Error(), "helm pull") {
		t.Errorf("for a missing chart: %v", err)
	}
	text := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(text, []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Render(t.Context(), text, Settings{Release: "my"}); err == nil || !strings.Contains(err.Error(), "expected a gzipped archive") {
		t.Errorf("for a file that is not an archive: %v", err)
	}
}

func TestValuesRefuse(t *testing.T) {
	values := Values{}
	for want, err := range map[string]error{
		"read the values in x.yaml": values.AddFile(File{"x.yaml", "a: b: c"}),
		"--set-value a":             values.Assign("a"),
		"--set-string-value a[x]=1": values.AssignText("a[x]=1"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not contain %q", err, want)
		}
	}
}

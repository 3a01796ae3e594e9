package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDefaults(t *testing.T) {
	vector, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, source := range vector {
		if source.SourceRepository == "" {
			t.Errorf("%s has no sourceRepository", source.Name)
		}
		if _, err := vector.Find(source.Name, Options{TargetVersion: "1.37.1"}); err != nil {
			t.Error(err)
		}
		if key := source.key(); names[key] {
			t.Errorf("%s is listed twice", source.Name)
		} else {
			names[key] = true
		}
	}
}

const list = `
images:
- {name: plain, repository: example.org/plain, tag: v1}
- {name: digest, repository: example.org/digest, tag: "sha256:abc", version: v7}
- {name: ref, ref: "example.org/ref:v3@sha256:abc"}
- {name: versioned, repository: example.org/old, tag: v1, targetVersion: "< 1.36"}
- {name: versioned, repository: example.org/new, tag: v2, targetVersion: ">= 1.36"}
- {name: versioned, repository: example.org/newarm, tag: v3, targetVersion: ">= 1.36", architectures: [arm64]}
- {name: kubernetes, repository: example.org/kube}
- {name: runtime, repository: example.org/runtime, tag: r1, runtimeVersion: ">= 1.30, < 1.40"}
- {name: empty}
`

func TestFind(t *testing.T) {
	vector, err := Parse([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		options   Options
		reference string
		version   string
		fails     string
	}{
		{name: "plain", reference: "example.org/plain:v1", version: "v1"},
		{name: "digest", reference: "example.org/digest@sha256:abc", version: "v7"},
		{name: "ref", reference: "example.org/ref:v3@sha256:abc"},
		{name: "versioned", options: Options{TargetVersion: "1.35.9"}, reference: "example.org/old:v1", version: "v1"},
		{name: "versioned", options: Options{TargetVersion: "v1.36.0", Architecture: "amd64"}, reference: "example.org/new:v2", version: "v2"},
		{name: "versioned", options: Options{TargetVersion: "1.36.0", Architecture: "arm64"}, reference: "example.org/newarm:v3", version: "v3"},
		{name: "versioned", options: Options{TargetVersion: "1.36.0-beta.1+build", Architecture: "amd64"}, reference: "example.org/new:v2", version: "v2"},
		{name: "kubernetes", options: Options{TargetVersion: "1.37.1"}, reference: "example.org/kube:v1.37.1", version: "v1.37.1"},
		{name: "kubernetes", reference: "example.org/kube"},
		{name: "runtime", options: Options{RuntimeVersion: "1.39.0"}, reference: "example.org/runtime:r1", version: "r1"},
		{name: "runtime", options: Options{RuntimeVersion: "1.40.0"}, fails: `no image "runtime"`},
		{name: "runtime", options: Options{RuntimeVersion: "one"}, fails: `invalid version "one"`},
		{name: "empty", fails: "neither repository nor ref"},
		{name: "missing", fails: `no image "missing"`},
	} {
		image, err := vector.Find(test.name, test.options)
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s, %s: the error is %v, want %q in it", test.name, test.options, err, test.fails)
			}
			continue
		}
		if err != nil || image.Reference != test.reference || image.Version != test.version {
			t.Errorf("%s, %s: got %+v, %v, want %s, version %s", test.name, test.options, image, err, test.reference, test.version)
		}
	}
}

func TestOverwrite(t *testing.T) {
	vector, err := Parse([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	overwrites, err := Parse([]byte(`
images:
- {name: plain, repository: mirror.example.org/plain}
- {name: digest, tag: v8, version: v8}
- {name: ref, repository: mirror.example.org/ref, tag: v4}
- {name: versioned, targetVersion: ">= 1.36", ref: "mirror.example.org/new@sha256:def"}
- {name: added, repository: mirror.example.org/added, tag: v1}
`))
	if err != nil {
		t.Fatal(err)
	}
	merged := vector.Overwrite(overwrites)
	for name, want := range map[string]string{
		"plain": "mirror.example.org/plain:v1", "digest": "example.org/digest:v8", "ref": "mirror.example.org/ref:v4",
		"versioned": "mirror.example.org/new@sha256:def", "added": "mirror.example.org/added:v1",
	} {
		if image, err := merged.Find(name, Options{TargetVersion: "1.37.1", Architecture: "amd64"}); err != nil || image.Reference != want {
			t.Errorf("%s is %+v, %v, want %s", name, image, err, want)
		}
	}
	if image, err := vector.Find("plain", Options{}); err != nil || image.Reference != "example.org/plain:v1" {
		t.Errorf("the list that was overwritten changed: %+v, %v", image, err)
	}
}

func TestInvalid(t *testing.T) {
	for content, want := range map[string]string{
		"images: [{repository: a}]":                    "name is missing",
		"images: [{name: a, ref: a, tag: b}]":          "ref excludes",
		"images: [{name: a, targetVersion: nonsense}]": `targetVersion is "nonsense"`,
		"images: {": "yaml",
		"images: [{name: a, runtimeVersion: '>> x'}]": "runtimeVersion",
	} {
		if _, err := Parse([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q in it", content, err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images.yaml")
	if err := os.WriteFile(path, []byte("images: [{name: pause, repository: mirror.example.org/pause}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(OverwriteVariable, path)
	vector, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if image, err := vector.Find("pause", Options{}); err != nil || !strings.HasPrefix(image.Reference, "mirror.example.org/pause:") {
		t.Errorf("got %+v, %v", image, err)
	}
	if err := os.WriteFile(path, make([]byte, maxFileSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FromEnvironment(); err == nil || !strings.Contains(err.Error(), "the limit is 1048576 bytes") {
		t.Errorf("for a file that is too large: %v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("no error for a missing file")
	}
}

package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
)

func configMap(name, value string) manifest.Document {
	return manifest.Document{Source: name, Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"value": value},
	}}
}

// noise returns text of the given size in bytes that compresses by at most a quarter.
func noise(seed string, size int) string {
	var text bytes.Buffer
	for i := 0; text.Len() < size; i++ {
		sum := sha256.Sum256(fmt.Append(nil, seed, i))
		text.WriteString(base64.StdEncoding.EncodeToString(sum[:]))
	}
	return text.String()[:size]
}

func mustPack(t *testing.T, documents []manifest.Document, options Options) *Parcel {
	t.Helper()
	options.Namespace, options.Name = "garden", "shop"
	parcel, err := Pack(documents, options)
	if err != nil {
		t.Fatal(err)
	}
	return parcel
}

func decode(t *testing.T, secrets []*corev1.Secret) []map[string]any {
	t.Helper()
	var objects []map[string]any
	for _, secret := range secrets {
		documents, err := manifest.Decode(secret, manifest.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documents {
			objects = append(objects, document.Object)
		}
	}
	return objects
}

func TestPack(t *testing.T) {
	documents := []manifest.Document{configMap("b", "1"), configMap("a", "2")}
	for _, plain := range []bool{false, true} {
		parcel := mustPack(t, documents, Options{Plain: plain})
		if len(parcel.Secrets) != 1 || parcel.Objects != 2 || parcel.Bytes == 0 {
			t.Fatalf("%+v", parcel)
		}
		secret, mr := parcel.Secrets[0], parcel.ManagedResource
		if !ptr.Deref(secret.Immutable, false) || !strings.HasPrefix(secret.Name, "shop-") || secret.Namespace != "garden" {
			t.Errorf("the Secret %s/%s is not immutable, or not named after its ManagedResource", secret.Namespace, secret.Name)
		}
		if names := SecretNames(mr); !reflect.DeepEqual(names, []string{secret.Name}) || len(mr.Annotations) != 1 {
			t.Errorf("the ManagedResource names %v, annotations %v", names, mr.Annotations)
		}
		if got := decode(t, parcel.Secrets); !reflect.DeepEqual(got, []map[string]any{documents[0].Object, documents[1].Object}) {
			t.Errorf("decoded %v", got)
		}
	}
	if first, again := mustPack(t, documents, Options{}), mustPack(t, documents, Options{}); !reflect.DeepEqual(first, again) {
		t.Error("equal manifests result in different parcels")
	}
	if mustPack(t, documents, Options{}).Secrets[0].Name == mustPack(t, documents[:1], Options{}).Secrets[0].Name {
		t.Error("different manifests result in Secrets with the same name")
	}
}

func TestPackDivides(t *testing.T) {
	var documents []manifest.Document
	var want []map[string]any
	for i := range 7 {
		documents = append(documents, configMap(fmt.Sprint("large-", i), noise(fmt.Sprint(i), 500_000)))
		want = append(want, documents[i].Object)
	}
	parcel := mustPack(t, documents, Options{Plain: true})
	if len(parcel.Secrets) < 4 {
		t.Errorf("%d Secrets", len(parcel.Secrets))
	}
	for _, secret := range parcel.Secrets {
		for key, value := range secret.Data {
			if len(value) > manifestsecret.MaxData {
				t.Errorf("key %s of Secret %s has %d bytes", key, secret.Name, len(value))
			}
		}
	}
	if got := decode(t, parcel.Secrets); !reflect.DeepEqual(got, want) {
		t.Error("the decoded objects differ from the packed ones")
	}
	_, err := Pack([]manifest.Document{configMap("giant", noise("x", 2_000_000))}, Options{Name: "shop", Plain: true})
	if err == nil || !strings.Contains(err.Error(), "the object giant takes") {
		t.Errorf("error %v", err)
	}
}

func TestReadPaths(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n", "notes.txt": "no manifest",
		"sub/a.json":     `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}]}`,
		".hidden/x.yaml": "a: [", "empty.yml": "# nothing\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	documents, err := ReadPaths(strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: in}\n"), []string{folder, "-"})
	if err != nil || len(documents) != 3 {
		t.Fatalf("%d documents, error %v", len(documents), err)
	}
	if source := documents[2].Source; source != "at index 0 in '-'" {
		t.Errorf("the source is %q", source)
	}
	_, err = ReadPaths(strings.NewReader("x: [\n---\ny: {"), []string{"-"})
	if err == nil || !strings.Contains(err.Error(), "index 0 in '-'") || !strings.Contains(err.Error(), "index 1 in '-'") {
		t.Errorf("error %v, want one about both documents", err)
	}
	for _, text := range []string{"a: 1", "{apiVersion: v1, kind: ConfigMap}", "{kind: ConfigMap, metadata: {name: a}}", "{apiVersion: v1, metadata: {name: a}}"} {
		if _, err := Parse("file", []byte(text)); err == nil || !strings.Contains(err.Error(), "at index 0 in 'file' is not a Kubernetes object") {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// TestParseNamesTheWayOfKustomizations checks that a kustomization that is read as a manifest names the flag for it.
func TestParseNamesTheWayOfKustomizations(t *testing.T) {
	for file, text := range map[string]string{
		"base/kustomization.yaml": "resources: [a.yaml]",
		"other.yaml":              "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: [a.yaml]}",
	} {
		want := "the document at index 0 in '" + file + "' is a kustomization: deliver its directory with -k instead of -f"
		if _, err := Parse(file, []byte(text)); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

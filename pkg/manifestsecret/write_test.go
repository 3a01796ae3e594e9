package manifestsecret

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
)

func options() Options {
	return Options{Namespace: "garden", Name: "shop", CompressFrom: math.MaxInt, MaxBytes: 64 << 20, MaxDocuments: 20_000}
}

func document(name string, size int) Document {
	random := rand.New(rand.NewPCG(uint64(name[0]), 2))
	var value strings.Builder
	for value.Len() < size {
		value.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[random.IntN(64)])
	}
	return Document{Name: name, Text: fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {v: %q}\n", name, value.String())}
}

func TestSecretsAreReadAsTheyWereWritten(t *testing.T) {
	for name, test := range map[string]struct {
		documents    []Document
		compressFrom int
		secrets      int
	}{
		"small":          {[]Document{document("a", 10), document("b", 10)}, math.MaxInt, 1},
		"compressed":     {[]Document{document("a", 10), document("b", 10)}, 0, 1},
		"several":        {[]Document{document("a", 600_000), document("b", 600_000), document("c", 600_000)}, math.MaxInt, 3},
		"several packed": {[]Document{document("a", 700_000), document("b", 700_000), document("c", 10)}, 4096, 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.CompressFrom = test.compressFrom
			secrets, err := Secrets(test.documents, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(secrets) != test.secrets {
				t.Errorf("%d Secrets, want %d", len(secrets), test.secrets)
			}
			var names []string
			for _, secret := range secrets {
				objects, err := Read(secret, o.MaxBytes)
				if err != nil {
					t.Fatal(err)
				}
				for _, object := range objects {
					names = append(names, object.GetName())
				}
			}
			if len(names) != len(test.documents) {
				t.Errorf("read %v", names)
			}
		})
	}
}

func TestSecretsRefuseWhatDoesNotFit(t *testing.T) {
	_, err := Secrets([]Document{document("giant", 1_000_000)}, options())
	if err == nil || !strings.Contains(err.Error(), "the object giant takes") {
		t.Errorf("error %v", err)
	}
	if _, err := Secrets(nil, options()); err == nil {
		t.Error("no error without objects")
	}
}

func TestReadBounds(t *testing.T) {
	o := options()
	o.CompressFrom = 0
	secrets, err := Secrets([]Document{document("a", 10_000)}, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(secrets[0], 5_000); err == nil || !strings.Contains(err.Error(), "more than 5000 bytes") {
		t.Errorf("error %v", err)
	}
	if _, err := Read(&corev1.Secret{Data: map[string][]byte{PlainKey: []byte("s3cret: [")}}, 5_000); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error %v, which must not quote the content", err)
	}
}

// TestReusedWritersCompressAsNewOnes checks that the result does not depend on what a writer has compressed before. The
// names of Secrets are digests of their contents: other bytes for the same manifests would be written again.
func TestReusedWritersCompressAsNewOnes(t *testing.T) {
	line := []byte("- name: value\n")
	for round, size := range []int{4096, 600, 70_000, 10, 1<<20 + 100, 5000, 512, 1<<20 - 100, 0, 300_000, 1<<20 + 100, 4096} {
		text := slices.Concat(document(string(rune('a'+round)), min(size, 20_000)).Text, bytes.Repeat(line, size/len(line)))
		var want bytes.Buffer
		writer := brotli.NewWriterLevel(&want, compressionLevel)
		if _, err := writer.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := compress(text)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("round %d: %d bytes are compressed to other bytes than by a new writer", round, len(text))
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	text := bytes.Repeat([]byte("  - name: value of a manifest\n"), 1000)
	for b.Loop() {
		if _, err := compress(text); err != nil {
			b.Fatal(err)
		}
	}
}

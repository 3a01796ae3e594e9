package kit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"testing"
)

// ChartArchive returns the archive of a Helm chart with one template, as a registry has it.
func ChartArchive(tb testing.TB, name, template string) []byte {
	tb.Helper()
	var content bytes.Buffer
	zipped := gzip.NewWriter(&content)
	writer := tar.NewWriter(zipped)
	for path, text := range map[string]string{"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n", "templates/a.yaml": template} {
		Must(tb, writer.WriteHeader(&tar.Header{Name: name + "/" + path, Mode: 0o644, Size: int64(len(text))}))
		_, err := writer.Write([]byte(text))
		Must(tb, err)
	}
	Must(tb, writer.Close())
	Must(tb, zipped.Close())
	return content.Bytes()
}

package certificates

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

// issue writes a certificate and its key into a directory.
func issue(t *testing.T, directory, name string) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(directory, certificateFile), certificate, 0o600))
	must(t, os.WriteFile(filepath.Join(directory, keyFile), key, 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDirectory checks that a changed certificate is served after a few seconds, and that the last valid one is served while
// the files are invalid.
func TestDirectory(t *testing.T) {
	path := t.TempDir()
	if _, err := FromDirectory(path, func(*tls.Certificate) {}, funcr.New(func(string, string) {}, funcr.Options{}), clock.RealClock{}); err == nil ||
		!strings.Contains(err.Error(), certificateFile) {
		t.Errorf("without files, the error is %v", err)
	}
	issue(t, path, "first")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var logged []string
		served := 0
		log := funcr.New(func(_, arguments string) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, arguments)
		}, funcr.Options{})
		d, err := FromDirectory(path, func(*tls.Certificate) { served++ }, log, clock.RealClock{})
		must(t, err)
		go func() { _ = d.Start(t.Context()) }()
		want := func(name string, count, lines int) {
			t.Helper()
			time.Sleep(3 * rereadInterval)
			synctest.Wait()
			certificate, err := d.GetCertificate(nil)
			must(t, err)
			if got := leafOf(certificate).DNSNames[0]; got != name || served != count {
				t.Errorf("serves %s, certificate number %d, want %s, number %d", got, served, name, count)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(logged) != lines {
				t.Errorf("logs %q, want %d lines", logged, lines)
			}
		}
		want("first", 1, 0)
		issue(t, path, "second")
		want("second", 2, 0)
		must(t, os.WriteFile(filepath.Join(path, certificateFile), []byte("text"), 0o600))
		want("second", 2, 1)
		must(t, os.Remove(filepath.Join(path, keyFile)))
		want("second", 2, 2)
		issue(t, path, "third")
		want("third", 3, 2)
	})
}

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// TestMain lets `up` re-execute the test binary as its background process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		os.Exit(runMain())
	}
	os.Exit(m.Run())
}

func TestUpAndDown(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	dir := filepath.Join(t.TempDir(), "run")
	t.Cleanup(func() { _ = run(context.Background(), []string{"down", "--dir", dir}, os.Stderr) })

	expect(t, "not running", "down", "--dir", dir)
	expect(t, "Everything runs", "up", "--control-plane-only", "--dir", dir)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client := discovery.NewDiscoveryClientForConfigOrDie(config)
	if _, err := client.ServerVersion(); err != nil {
		t.Error(err)
	}
	expect(t, "already running", "up", "--control-plane-only", "--dir", dir)
	if err := run(t.Context(), []string{"tour", "--dir", dir}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "make demo") {
		t.Errorf("a tour without a resource-manager: error %v, want one that names the command to run", err)
	}

	expect(t, "Stopped", "down", "--dir", dir)
	if _, err := client.ServerVersion(); err == nil {
		t.Error("kube-apiserver runs after down")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory exists after down: %v", err)
	}
}

func TestErrorsForUsers(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "important"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"nonsense"}, "unknown command"},
		{[]string{"up", "--nonsense"}, "not defined: -nonsense"},
		{[]string{"tour", "--dir", t.TempDir()}, "not running"},
		{[]string{"down", "--dir", foreign}, "was not created by the demo"},
		{[]string{"up", "--control-plane-only", "--dir", foreign}, "was not created by the demo"},
	} {
		err := run(t.Context(), test.args, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: error %v, want one with %q", test.args, err, test.want)
		}
	}
	if _, err := os.Stat(filepath.Join(foreign, "important")); err != nil {
		t.Error(err)
	}
}

// expect runs a command that must succeed, and looks for a text in its output.
func expect(t *testing.T, want string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, &out)
	}
	if !strings.Contains(out.String(), want) {
		t.Errorf("the output of %v is %q, want %q in it", args, &out, want)
	}
}

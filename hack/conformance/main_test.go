package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestOptions checks which flags are refused, and the defaults that depend on others.
func TestOptions(t *testing.T) {
	directory := t.TempDir()
	for arguments, want := range map[string]string{
		"--cluster nowhere": `--cluster "nowhere": use shoot or base`,
		"--parallel 0":      "at least 1",
		"--shard-size 0":    "at least 1",
		"-o yaml":           `-o "yaml": use table or json`,
		"argument":          "unknown command",
	} {
		c := command()
		c.SetOut(io.Discard)
		c.SetArgs(append(strings.Fields(arguments), "--directory", directory))
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", arguments, err, want)
		}
	}
	o := options{cluster: baseCluster, kubeconfig: "kubeconfig", directory: directory, parallel: 1, size: 1, output: "json"}
	if err := o.complete(); err != nil || o.cluster != otherCluster || !strings.HasPrefix(o.kubeconfig, "/") {
		t.Errorf("with a kubeconfig the options are %+v, error %v", o, err)
	}
}

// TestForward checks that a server with TLS responds through the local port.
func TestForward(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	local, stop, err := forward(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Post(local, "text/plain", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if content, err := io.ReadAll(response.Body); err != nil || string(content) != "question" {
		t.Errorf("the response is %q, error %v", content, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, _, err := forward("://"); err == nil {
		t.Error("an invalid URL is accepted")
	}
}

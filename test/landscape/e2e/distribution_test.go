package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/landscape"
	"github.com/trellis-k8s/trellis/test/landscape/build"
)

// TestDistribution runs a landscape with Debian's containerd, runc and CNI plugins next to one with the built programs.
func TestDistribution(t *testing.T) {
	needsLandscape(t)
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("needs Debian or Ubuntu: ", err)
	}
	var out bytes.Buffer
	options := landscape.Options{
		Root: base.Root, Directory: filepath.Join(base.Root, ".run", "landscape-distribution"), Distribution: true, InstallPackages: true, Out: &out,
	}
	l, err := landscape.New(options)
	must(t, err)
	ctx := context.Background()
	t.Cleanup(func() { must(t, l.Down(ctx)) })
	if err := l.Up(ctx); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
	c := on(t, l)
	c.create(c.deployment("web", 2, c.server()), service("web", corev1.ServiceTypeClusterIP))
	pods := c.available("web")
	c.reaches(pods[0], "http://web/")
	if logs := c.kubectl("logs", pods[0]); !strings.Contains(logs, "serving on :8080") {
		t.Errorf("the logs are %q", logs)
	}
	node := &corev1.Node{}
	must(t, c.Get(ctx, client.ObjectKey{Name: landscape.Node}, node))
	built, err := build.Version(base.Root, "test/landscape/binaries/containerd", "github.com/containerd/containerd/v2")
	must(t, err)
	runtime := node.Status.NodeInfo.ContainerRuntimeVersion
	t.Logf("the container runtime is %s", runtime)
	if runtime == "containerd://"+built {
		t.Errorf("the container runtime is %s, which is the one that is built", runtime)
	}

	// Commands without the option apply to the existing landscape.
	options.Distribution = false
	l, err = landscape.New(options)
	must(t, err)
	if !l.Distribution {
		t.Error("the choice of programs was not kept")
	}
	if _, err := l.Push(ctx, "probe"); err != nil {
		t.Error(err)
	}
}

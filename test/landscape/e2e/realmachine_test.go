package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bootTimeout is how long an emulated machine may take to join, on a busy host.
const bootTimeout = 20 * time.Minute

// TestRealMachine boots the exported root file system on an emulated machine, with its own kernel, disk and network and
// with cgroups v2 only. The machine joins a control plane and runs a Pod.
func TestRealMachine(t *testing.T) {
	c := onBase(t)
	needsEmulator(t)
	makeMachineImages(t)
	inner, kubeconfig := c.controlPlane()
	c.nodes(inner, kubeconfig, innerNodes)
	node := &corev1.Secret{}
	must(t, c.Get(c.ctx, c.key("node"), node))
	directory, files := t.TempDir(), t.TempDir()
	for name, content := range node.Data {
		writeFile(t, filepath.Join(files, "etc", "kubernetes", "node", name), content)
	}
	// 10.0.2.15 is the address in the emulated network, from which the host and its networks are reachable.
	writeFile(t, filepath.Join(files, "etc", "machine.conf"), fmt.Appendf(nil, "REGISTRY=%s\nPAUSE_IMAGE=%s\nKUBELET_IMAGE=%s\nNODE_NAME=real\nNODE_IP=10.0.2.15\n",
		base.Registry(), c.image("pause"), c.image("kubelet")))
	archive := filepath.Join(directory, "machine.tar.gz")
	must(t, base.ExportMachine(archive))
	console := boot(t, c.ctx, directory, archive, files)

	began := time.Now()
	c.within(bootTimeout, "the machine joins the cluster", func() error {
		if err := ready(c, inner, "real"); err != nil {
			return fmt.Errorf("%w; the console:\n%s", err, tail(console()))
		}
		return nil
	})
	t.Logf("the machine is ready after %s", time.Since(began).Round(time.Second))
	spec := c.server()
	spec.NodeName = "real"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-real", Namespace: "default"}, Spec: spec}
	c.eventually("a Pod is created", func() error { return inner.Create(c.ctx, p) })
	c.within(bootTimeout, "the Pod is ready", func() error { // its kubelet probes it
		if err := inner.Get(c.ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if len(p.Status.ContainerStatuses) != 1 || !p.Status.ContainerStatuses[0].Ready {
			return fmt.Errorf("its status is %+v", p.Status)
		}
		return nil
	})
	joined := &corev1.Node{}
	must(t, inner.Get(c.ctx, client.ObjectKey{Name: "real"}, joined))
	t.Logf("kernel %s, %s", joined.Status.NodeInfo.KernelVersion, joined.Status.NodeInfo.OSImage)
	if !strings.Contains(console(), "default-hierarchy=unified") {
		t.Error("systemd is not running with cgroups v2 only")
	}
	for line := range strings.Lines(console()) {
		if strings.Contains(line, "Failed") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// needsEmulator skips the test unless it is requested, because it takes minutes, or if the programs are missing.
func needsEmulator(t *testing.T) {
	t.Helper()
	if !*emulator {
		t.Skip("emulates a machine, which takes minutes: make test-landscape LANDSCAPE=TestRealMachine TESTFLAGS=-landscape.emulator")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64")
	}
	for program, name := range map[string]string{"qemu-system-x86_64": "qemu-system-x86", "mke2fs": "e2fsprogs", "apt-get": "apt"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs the Debian package %s: %v", name, err)
		}
	}
}

// boot boots a root file system with additional files, until the test ends. It returns the output of the console.
func boot(t *testing.T, ctx context.Context, directory, archive, files string) (console func() string) { //nolint:revive // as in other helpers
	t.Helper()
	script, err := testdata.ReadFile("testdata/boot.sh")
	must(t, err)
	log, err := os.Create(filepath.Join(directory, "console"))
	must(t, err)
	command := exec.CommandContext(ctx, "sh", "-s", archive, files, filepath.Join(base.Root, "bin", "landscape", ".emulator"))
	command.Dir, command.Stdin, command.Stdout, command.Stderr = directory, bytes.NewReader(script), log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // if the test is killed
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		must(t, log.Close())
	})
	return func() string {
		content, err := os.ReadFile(log.Name())
		must(t, err)
		return string(content)
	}
}

func tail(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, content, 0o600))
}

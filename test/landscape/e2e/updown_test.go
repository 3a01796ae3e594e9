package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trellis-k8s/trellis/test/landscape"
	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

// traces returns the traces of a landscape on the host.
func traces(t *testing.T, l *landscape.Landscape) string {
	t.Helper()
	var found []string
	if pids, err := machine.Processes(l.Name()); err != nil || len(pids) > 0 {
		found = append(found, "processes")
	}
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == l.Name() {
			found = append(found, path)
		}
		return nil
	})
	must(t, err)
	if _, err := os.Stat("/sys/class/net/" + l.Name()); err == nil {
		found = append(found, "network device")
	}
	for _, file := range []string{"/proc/self/mountinfo", "/proc/net/route"} {
		content, err := os.ReadFile(file)
		must(t, err)
		if strings.Contains(string(content), l.Directory) || strings.Contains(string(content), l.Name()) {
			found = append(found, file)
		}
	}
	if _, err := os.Stat(l.Directory); err == nil {
		found = append(found, l.Directory)
	}
	return strings.Join(found, ", ")
}

// TestUpAndDown starts a second landscape next to the first one, kills it during its start, starts it again, and checks
// that nothing is left.
func TestUpAndDown(t *testing.T) {
	needsLandscape(t)
	var out bytes.Buffer
	options := landscape.Options{Root: base.Root, Directory: filepath.Join(base.Root, ".run", "landscape-second"), Out: &out}
	second, err := landscape.New(options)
	must(t, err)
	ctx := context.Background()
	t.Cleanup(func() { must(t, second.Down(ctx)) })
	must(t, second.Down(ctx)) // without a landscape
	rules, err := exec.Command("nft", "list", "ruleset").Output()
	must(t, err)

	t.Log("killing the landscape during its start, together with the program that starts it")
	program := exec.Command(filepath.Join(base.Root, "bin", "landscape", "landscape"), "--directory", second.Directory, "up")
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, program.Start())
	c := &cluster{t: t, ctx: ctx}
	c.eventually("the machine is running", func() error {
		pid, err := machine.Process(second.Name())
		if err == nil && pid == 0 {
			err = os.ErrNotExist
		}
		return err
	})
	must(t, syscall.Kill(-program.Process.Pid, syscall.SIGKILL))
	_ = program.Wait()
	pid, err := machine.Process(second.Name())
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL))

	t.Log("starting the landscape again, and using it")
	second, err = landscape.New(options)
	must(t, err)
	if err := second.Up(ctx); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if second.Network == base.Network {
		t.Errorf("both landscapes have the addresses %s", second.Network.Block())
	}
	if _, err := second.Client(); err != nil {
		t.Error(err)
	}
	t.Log(out.String())

	t.Log("killing and removing the landscape")
	pid, err = machine.Process(second.Name())
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	for range 2 {
		must(t, second.Down(ctx))
		if left := traces(t, second); left != "" {
			t.Errorf("traces of the landscape: %s", left)
		}
	}
	after, err := exec.Command("nft", "list", "ruleset").Output()
	must(t, err)
	if !bytes.Equal(rules, after) {
		t.Errorf("the nftables rules of the host changed:\n%s\nbefore:\n%s", after, rules)
	}
	if running, err := base.Running(); err != nil || !running {
		t.Errorf("the other landscape is no longer running: %v", err)
	}
}

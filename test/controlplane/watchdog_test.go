package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const helperStarted = "started"

// helper starts a control plane, reports that, and hangs.
func helper() {
	err := func() error {
		cp, err := Start(context.Background(), Options{ControllerManager: true, Scheduler: true, Nodes: 1})
		if err != nil {
			return err
		}
		if _, err := cp.StartProcess("other", "sleep", "600"); err != nil {
			return err
		}
		fmt.Println(helperStarted)
		select {}
	}()
	fmt.Println("failed", err)
	os.Exit(1)
}

// TestKilled checks that a killed process leaves no process and no directory behind, whenever it is killed.
func TestKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the watchdog finds processes on Linux only")
	}
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	t.Run("when it is up", func(t *testing.T) {
		temp := t.TempDir()
		kill := startHelper(t, temp, true)
		dirs, err := filepath.Glob(filepath.Join(temp, "trellis-controlplane-*"))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("directories %v, error %v", dirs, err)
		}
		if got := len(processesOf(t, temp)); got != 7 {
			t.Fatalf("%d processes run, want 7, including one watchdog", got)
		}
		kill()
		eventuallyNothingLeft(t, temp)
	})
	t.Run("while it starts", func(t *testing.T) {
		temp := t.TempDir()
		kill := startHelper(t, temp, false)
		eventually(t, "kube-apiserver is started", func(context.Context) error {
			for _, process := range processesOf(t, temp) {
				if strings.Contains(process, "kube-apiserver\x00--") {
					return nil
				}
			}
			return errors.New("no such process")
		})
		kill()
		eventuallyNothingLeft(t, temp)
	})
}

// startHelper starts the helper process with its own temporary directory. If wait is set, it waits for the control
// plane.
func startHelper(t *testing.T, temp string, wait bool) (kill func()) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), helperEnv+"=1", "TMPDIR="+temp)
	command.WaitDelay = 10 * time.Second
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		t.Helper()
		if err := command.Process.Kill(); err != nil { // SIGKILL
			t.Fatal(err)
		}
		_ = command.Wait() // the error is always "signal: killed"
	}
	if !wait {
		return kill
	}
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if scanner.Text() == helperStarted {
			return kill
		}
		t.Log(scanner.Text())
	}
	t.Fatal("the helper process did not start a control plane")
	return nil
}

// processesOf returns the command lines of the processes that use the directory, including the watchdog.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		commandLine, _ := os.ReadFile(path) // the content is empty if the process has ended
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		_, isHelper := strings.CutPrefix(string(commandLine), os.Args[0])
		if !isHelper && strings.Contains(string(commandLine)+string(environment), dir) {
			found = append(found, string(commandLine))
		}
	}
	return found
}

func eventuallyNothingLeft(t *testing.T, temp string) {
	t.Helper()
	eventually(t, "no process and no directory remains", func(context.Context) error {
		if left := processesOf(t, temp); len(left) > 0 {
			return fmt.Errorf("processes %q", left)
		}
		entries, err := os.ReadDir(temp)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(entries) > 0 {
			return fmt.Errorf("files %v", entries)
		}
		return nil
	})
}

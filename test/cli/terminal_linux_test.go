package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trellis-k8s/trellis/cmd/kubectl-mr/app"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// program builds kubectl-mr once, for tests that need a process: signals and a terminal.
var program = sync.OnceValues(controlplane.BuildProgram[app.Program])

func kubectlMR(t *testing.T) string {
	t.Helper()
	path, err := program()
	kit.Must(t, err)
	return path
}

// pty is a terminal, and a process on it.
type pty struct {
	master, slave *os.File
	command       *exec.Cmd
	before        unix.Termios
	mu            sync.Mutex
	written       bytes.Buffer
}

// newPty starts kubectl mr on its own terminal of 60 columns and 20 rows.
func (w *world) newPty(t *testing.T, environment []string, args ...string) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("pseudo terminals are not available: %v", err)
	}
	kit.Must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	kit.Must(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	kit.Must(t, err)
	p := &pty{master: master, slave: slave}
	p.resize(t, 60, 20)
	p.before = p.mode(t)
	p.command = exec.CommandContext(t.Context(), kubectlMR(t), args...)
	p.command.Env = append(append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "TERM=xterm", "LC_ALL=C.UTF-8", "NO_COLOR="), environment...)
	p.command.Stdin, p.command.Stdout, p.command.Stderr = slave, slave, slave
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	kit.Must(t, p.command.Start())
	go func() { _, _ = io.Copy(p, master) }()
	t.Cleanup(func() {
		_ = master.Close()
		_ = slave.Close()
	})
	return p
}

func (p *pty) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.Write(text)
}

func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

func (p *pty) resize(t *testing.T, columns, rows uint16) {
	t.Helper()
	kit.Must(t, unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
}

func (p *pty) mode(t *testing.T) unix.Termios {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	kit.Must(t, err)
	return *mode
}

func (p *pty) press(t *testing.T, keys string) {
	t.Helper()
	_, err := p.master.WriteString(keys)
	kit.Must(t, err)
}

// shows waits until a text is written to the terminal.
func (p *pty) shows(t *testing.T, text string) {
	t.Helper()
	kit.Eventually(t, text, func() string {
		if written := p.text(); !strings.Contains(written, text) {
			return fmt.Sprintf("%q was not written: %q", text, written)
		}
		return ""
	})
}

// ends waits for the end of the process, and checks that the terminal is restored.
func (p *pty) ends(t *testing.T, code int) {
	t.Helper()
	err := p.command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || p.command.ProcessState.ExitCode() != code {
		t.Errorf("the process ended with %v, want exit code %d:\n%q", err, code, p.text())
	}
	if after := p.mode(t); after != p.before {
		t.Errorf("the terminal is not restored: it is %+v, was %+v", after, p.before)
	}
}

// Sequences of xterm that enter and leave its alternate screen.
const (
	secondScreen = "\x1b[?1049h"
	firstScreen  = "\x1b[?1049l"
)

var colour = regexp.MustCompile(`\x1b\[[0-9;]*(3[0-7]|38;5;\d+)m`)

// TestTopOnTerminal runs the program on a terminal of 60 columns, and ends it in all possible ways.
func TestTopOnTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.await(t, "garden", "webshop-sale", state.Unhealthy)
	for name, test := range map[string]struct {
		environment []string
		end         func(t *testing.T, p *pty)
		code        int
		colours     bool
	}{
		"q":      {nil, func(t *testing.T, p *pty) { t.Helper(); p.press(t, "qq") }, 0, true},
		"Ctrl-C": {[]string{"NO_COLOR=1"}, func(t *testing.T, p *pty) { t.Helper(); p.press(t, "\x03") }, 0, false},
		"SIGTERM": {[]string{"TERM=screen-256color"}, func(t *testing.T, p *pty) {
			t.Helper()
			kit.Must(t, p.command.Process.Signal(syscall.SIGTERM))
		}, 130, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := w.newPty(t, test.environment, "top", "-n", "garden")
			p.shows(t, secondScreen)
			p.shows(t, "Unhealthy")
			if during := p.mode(t); during == p.before {
				t.Error("the program does not use the terminal while it runs")
			}
			p.press(t, "\r")
			p.shows(t, "Esc back")
			p.resize(t, 100, 30)
			p.shows(t, "OBJECT")
			if got := colour.MatchString(p.text()); got != test.colours {
				t.Errorf("colours: %t, want %t\n%q", got, test.colours, p.text())
			}
			test.end(t, p)
			p.ends(t, test.code)
			kit.Eventually(t, "the first screen", func() string {
				if written := p.text(); strings.LastIndex(written, firstScreen) < strings.LastIndex(written, secondScreen) {
					return fmt.Sprintf("the first screen is not restored: %q", written)
				}
				return ""
			})
		})
	}
	for name, test := range map[string]struct {
		environment []string
		wanted      string
	}{
		"dumb":       {[]string{"TERM=dumb"}, "top does not support this terminal (TERM=dumb): use `kubectl mr get -w`"},
		"nothing":    {[]string{"TERM="}, "top does not support this terminal"},
		"unknown":    {[]string{"TERM=abacus"}, "get -w"},
		"no cluster": {[]string{"KUBECONFIG=/nowhere"}, "KUBECONFIG is /nowhere, which does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := w.newPty(t, test.environment, "top", "-A")
			p.ends(t, 2)
			p.shows(t, test.wanted)
		})
	}
}

// normalScreen is normal for lines that are cut at the width of a screen. The cut depends on the width of the ages.
func normalScreen(text string) string {
	const certain = 60
	lines := strings.Split(normal(text), "\n")
	for i, line := range lines {
		if characters := []rune(line); strings.HasSuffix(line, "…") && len(characters) > certain {
			lines[i] = string(characters[:certain])
		}
	}
	return strings.Join(lines, "\n")
}

var topBlock = regexp.MustCompile("(?s)```text top([^\n]*)\n(.*?)```\n")

// TestTopInTmux drives top in tmux by the keys of docs/cli.md, and compares the screen with the page in the same way as TestTranscripts.
func TestTopInTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed (apt-get install tmux); TestTop and TestTopOnTerminal test the same without it")
	}
	w := newWorld(t) // not parallel: it may write the page
	w.await(t, "garden", "webshop-sale", state.Unhealthy)
	w.eventually(t, 0, []string{"FailedScheduling", "Unschedulable", "ReplicaSetUpdated", "ResourcesProgressing is True"}, "why", "-n", "garden")
	content, err := os.ReadFile(transcribed[0])
	kit.Must(t, err)
	socket := filepath.Join(t.TempDir(), "tmux")
	run := func(args ...string) string {
		command := exec.CommandContext(context.Background(), tmux, append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		command.Env = append(os.Environ(), "TMUX=", "KUBECONFIG="+w.kubeconfig, "LC_ALL=C.UTF-8", "COLUMNS=", "LINES=")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("new-session", "-d", "-x", "110", "-y", "20", kubectlMR(t)+" top -n garden")
	t.Cleanup(func() { run("kill-server") })
	screen := func() string {
		var lines []string
		for line := range strings.SplitSeq(strings.ReplaceAll(run("capture-pane", "-p"), w.host(), "127.0.0.1:6443"), "\n") {
			lines = append(lines, strings.TrimRight(line, " "))
		}
		return strings.Join(lines, "\n")
	}
	var screens []string
	for _, block := range topBlock.FindAllStringSubmatch(string(content), -1) {
		for key := range strings.FieldsSeq(block[1]) {
			run("send-keys", key)
		}
		var last string
		timeout := kit.WaitTimeout / 4
		if *update {
			timeout = kit.WaitTimeout / 12
		}
		for deadline := time.Now().Add(timeout); ; <-time.After(200 * time.Millisecond) {
			last = screen()
			if !*update && normalScreen(last) == normalScreen(block[2]) || time.Now().After(deadline) {
				break
			}
		}
		if normalScreen(last) != normalScreen(block[2]) && !*update {
			t.Errorf("after the keys%s the screen shows\n%s\nwant, as in docs/cli.md,\n%s", block[1], last, block[2])
		}
		screens = append(screens, last)
	}
	if len(screens) == 0 {
		t.Error("docs/cli.md contains no screens")
	}
	if *update {
		written := topBlock.ReplaceAllStringFunc(string(content), func(block string) string {
			first, _, _ := strings.Cut(block, "\n")
			next := screens[0]
			screens = screens[1:]
			return first + "\n" + next + "```\n"
		})
		kit.Must(t, os.WriteFile(transcribed[0], []byte(written), 0o644))
	}
}

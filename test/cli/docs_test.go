package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

var update = flag.Bool("update", false, "write the output of the commands into the pages")

// transcribed are the pages with transcripts, which are run in this order.
var transcribed = []string{"../../docs/cli.md", "../../docs/tutorial.md"}

// transcript is a command in the page, and its output.
type transcript struct{ command, says string }

var consoleBlock = regexp.MustCompile("(?s)```console\n.*?\n```\n")

// TestTranscripts runs every command of docs/cli.md and docs/tutorial.md, in order, and compares its output with the page. Ages and
// values that Kubernetes generates may differ. `go test ./test/cli -run TestTranscripts -update` rewrites the pages.
func TestTranscripts(t *testing.T) {
	w := newWorld(t) // not parallel: the parallel tests run after it
	t.Cleanup(func() { w.restore(t) })
	w.await(t, "garden", "webshop-sale", state.Unhealthy)
	w.eventually(t, 0, []string{"FailedScheduling", "Unschedulable", "ReplicaSetUpdated", "ResourcesProgressing is True"}, "why", "-n", "garden")
	w.eventually(t, 0, []string{"2/2 ready", "wants 2", "2 endpoints"}, "tree", "webshop-app", "-n", "garden")
	for _, page := range transcribed {
		t.Run(filepath.Base(page), func(t *testing.T) { w.check(t, page) })
	}
}

// check runs the commands of a page.
func (w *world) check(t *testing.T, page string) {
	t.Helper()
	content, err := os.ReadFile(page)
	kit.Must(t, err)
	written := consoleBlock.ReplaceAllStringFunc(string(content), func(block string) string {
		var result strings.Builder
		for _, each := range transcriptsIn(block) {
			says := w.settled(t, each)
			if normal(says) != normal(each.says) && !*update {
				t.Errorf("the output of\n$ %s\nis\n%s\nwant, as in the page,\n%s", each.command, says, each.says)
			}
			if suspended := suspending.FindStringSubmatch(each.command); suspended != nil {
				w.await(t, suspended[2], suspended[1], state.Suspended) // a user takes longer than that to continue
			}
			fmt.Fprintf(&result, "$ %s\n%s", each.command, says)
		}
		return "```console\n" + result.String() + "```\n"
	})
	if *update {
		kit.Must(t, os.WriteFile(page, []byte(written), 0o644))
	}
}

// changing matches commands that change something and must not run twice.
var changing = regexp.MustCompile(`\bkubectl (label|patch|apply|delete|mr (suspend|resume|reconcile|create|wait))\b`)

var suspending = regexp.MustCompile(`^kubectl mr suspend (\S+) -n (\S+)$`)

// settled returns the output of a command. A read command is repeated until its output matches the page, because a slow machine takes
// longer to get there.
func (w *world) settled(t *testing.T, each transcript) string {
	t.Helper()
	says := w.shell(t, each.command)
	for deadline := time.Now().Add(kit.WaitTimeout / 4); !*update && normal(says) != normal(each.says) && time.Now().Before(deadline); {
		if changing.MatchString(each.command) {
			break
		}
		<-time.After(100 * time.Millisecond)
		says = w.shell(t, each.command)
	}
	return says
}

// restore makes the sale fail again.
func (w *world) restore(t *testing.T) {
	t.Helper()
	sale := managedResource("garden", "webshop-sale")
	kit.Must(t, client.IgnoreNotFound(w.client.Delete(context.Background(), sale)))
	w.run("wait", "webshop-sale", "-n", "garden", "--for", "deleted").says(t, 0)
	w.shellIn(repository(t), "kubectl label node node-0 disk-; kubectl delete configmap flags -n webshop")
	w.run("create", "webshop-sale", "-n", "garden", "-f", "../../examples/webshop/sale").says(t, 0)
}

func transcriptsIn(block string) []transcript {
	block = strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```\n")
	var found []transcript
	for line := range strings.Lines(block) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			found = append(found, transcript{command: strings.TrimSuffix(command, "\n")})
		} else if len(found) > 0 {
			found[len(found)-1].says += line
		}
	}
	return found
}

// progress matches the progress lines of operations that take over a second.
var progress = regexp.MustCompile(`(?m)^.* …\n`)

// shell runs a command at the root of the repository. kubectl mr runs in this process, and kubectl itself as a program. It returns both
// outputs, and the exit code if there is one.
func (w *world) shell(t *testing.T, command string) string {
	t.Helper()
	root := repository(t)
	if mr, is := strings.CutPrefix(command, "kubectl mr "); is {
		args := strings.Fields(mr)
		for i := range args {
			if strings.HasPrefix(args[i], "examples/") {
				args[i] = filepath.Join(root, args[i])
			}
		}
		out := w.run(args...)
		text := strings.ReplaceAll(out.out+progress.ReplaceAllString(out.err, ""), root+string(filepath.Separator), "")
		if out.code != 0 {
			text += fmt.Sprintf("(exit code %d)\n", out.code)
		}
		return text
	}
	return w.shellIn(root, command)
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	kit.Must(t, err)
	return root
}

// shellIn runs a command with the kubectl of the repository. A failure is part of the returned text.
func (w *world) shellIn(root, command string) string {
	shell := exec.CommandContext(context.Background(), "sh", "-c", command)
	shell.Dir = root
	shell.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	out, _ := shell.CombinedOutput()
	return string(out)
}

// fleeting matches text that differs from run to run: ages, names of Pods and their nodes, and text that differs between versions of
// Kubernetes.
var fleeting = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?m?s)\b|\b(\d+d)?(\d+h)?\d+m\b`), "AGE"},
	{regexp.MustCompile(`\b(storefront|sale|hello)-[a-z0-9]{7,10}-[a-z0-9]{5}\b`), "$1-POD"},
	{regexp.MustCompile(`\b(storefront|sale|hello)-[a-z0-9]{7,10}\b`), "$1-SET"},
	{regexp.MustCompile(`\bstorefront-[a-z0-9]{5}\b`), "storefront-SLICE"},
	{regexp.MustCompile(`node-\d`), "NODE"},
	{regexp.MustCompile(`0/3 nodes are available: .*`), "0/3 nodes are available"},
}

func normal(text string) string {
	for _, each := range fleeting {
		text = each.pattern.ReplaceAllString(text, each.name)
	}
	return squeeze(text)
}

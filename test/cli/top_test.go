package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gdamore/tcell/v2"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/cli/top"
	"github.com/trellis-k8s/trellis/test/kit"
)

// simulated is a terminal in memory.
type simulated struct {
	tcell.SimulationScreen
	mu sync.Mutex
	// text is the content of the screen. begun and givenBack count how often the terminal was initialized and released.
	text             string
	begun, givenBack int
	// fails makes it panic when it is drawn on.
	fails bool
}

func (s *simulated) Init() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun++
	return s.SimulationScreen.Init()
}

func (s *simulated) Fini() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.givenBack++
	s.SimulationScreen.Fini()
}

func (s *simulated) Show() {
	s.SimulationScreen.Show()
	cells, width, _ := s.GetContents()
	var text strings.Builder
	for i, cell := range cells {
		if i > 0 && i%width == 0 {
			text.WriteByte('\n')
		}
		text.WriteString(string(cell.Runes))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		panic("the terminal broke")
	}
	s.text = text.String()
}

func (s *simulated) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// topRun is a running top.
type topRun struct {
	*simulated
	t *testing.T
	// ended receives the error of top, or its panic as an error.
	ended chan error
}

// startTop runs top on a terminal in memory until the context is cancelled.
func (w *world) startTop(ctx context.Context, t *testing.T, o top.Options, tune func(*console.Console), args ...string) *topRun {
	t.Helper()
	c := kubectl.NewConsole(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}, "v0.0.0-test")
	flags := pflag.NewFlagSet("top", pflag.ContinueOnError)
	c.AddFlags(flags)
	kit.Must(t, flags.Parse(append([]string{"--kubeconfig", w.kubeconfig, "--cache-dir", t.TempDir()}, args...)))
	if tune != nil {
		tune(c)
	}
	run := &topRun{simulated: &simulated{SimulationScreen: tcell.NewSimulationScreen("UTF-8")}, t: t, ended: make(chan error, 1)}
	go func() {
		defer func() {
			if problem := recover(); problem != nil {
				run.ended <- fmt.Errorf("panic: %v", problem)
			}
		}()
		run.ended <- c.Explain(top.Run(ctx, c, o, run.simulated))
	}()
	return run
}

// press presses keys: characters, or keys of tcell.
func (r *topRun) press(keys ...any) {
	for _, key := range keys {
		switch key := key.(type) {
		case string:
			for _, character := range key {
				r.InjectKey(tcell.KeyRune, character, tcell.ModNone)
			}
		case tcell.Key:
			r.InjectKey(key, 0, tcell.ModNone)
		}
	}
}

// shows waits until all texts are on the screen.
func (r *topRun) shows(texts ...string) {
	r.t.Helper()
	kit.Eventually(r.t, strings.Join(texts, ", "), func() string {
		select {
		case err := <-r.ended:
			r.t.Fatalf("top ended: %v", err)
		default:
		}
		shown := squeeze(r.shown())
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return fmt.Sprintf("%q is not on the screen:\n%s", text, shown)
			}
		}
		return ""
	})
}

// ends waits until top has ended and released the terminal.
func (r *topRun) ends() error {
	r.t.Helper()
	err := <-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun != r.givenBack {
		r.t.Errorf("the terminal was initialized %d times and released %d times", r.begun, r.givenBack)
	}
	return err
}

const missingKind = `apiVersion: nowhere.example.org/v1
kind: Nothing
metadata: {name: nothing, namespace: $NS}
`

// TestTop watches ManagedResources that are created and changed, and acts on one.
func TestTop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	run := w.startTop(t.Context(), t, top.Options{}, nil, "-n", namespace)
	run.shows("No ManagedResources found in namespace " + namespace)
	w.deliver(t, namespace, "shop", state.Ready, configMap)
	run.shows("1 Ready", "> shop Ready")
	w.deliver(t, namespace, "broken", state.Failed, missingKind)
	run.shows("1 Failed 1 Ready", "> broken Failed", "shop Ready", "1 of 2")
	run.press("u")
	run.shows("1 of 2 shown (unhealthy)")
	run.press(tcell.KeyEnter)
	run.shows(namespace+"/broken, read", "ManagedResource "+namespace+"/broken is Failed")
	run.press(tcell.KeyEnd)
	run.shows("OBJECT HEALTH AGE DETAIL", "Missing")
	run.press(tcell.KeyEscape, tcell.KeyEscape, "/shop", tcell.KeyEnter)
	run.shows("1 of 2 shown (/shop)", "> shop Ready")
	w.run("suspend", "shop", "-n", namespace).says(t, 0)
	run.shows("1 Suspended", "> shop Suspended")
	run.press("r")
	run.shows("Reconcile " + namespace + "/shop? y/n")
	run.press("y")
	run.shows("shop: is suspended and is not reconciled")
	w.run("resume", "shop", "-n", namespace).says(t, 0)
	run.shows("> shop Ready")
	run.press("r")
	run.shows("y/n")
	run.press("y")
	run.shows("shop: reconciliation requested")
	run.SetSize(60, 20)
	kit.Must(t, run.PostEvent(tcell.NewEventResize(60, 20)))
	run.press("?")
	run.shows("any key: back")
	run.press("??", tcell.KeyEscape)
	kit.Must(t, client.IgnoreNotFound(w.client.Delete(t.Context(), managedResource(namespace, "broken"))))
	run.shows("> shop Ready", "1 of 1")
	run.press("q")
	kit.Must(t, run.ends())
}

// host is the address of the API server.
func (w *world) host() string {
	return strings.TrimSuffix(strings.TrimPrefix(w.controlPlane.Config().Host, "https://"), "/")
}

// TestTopFollowsARollout opens a ManagedResource and leaves it open. The status of its Pods appears by itself.
func TestTopFollowsARollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, end := context.WithCancel(t.Context())
	run := w.startTop(ctx, t, top.Options{Choice: console.Choice{AllNamespaces: true}}, nil)
	run.shows("ManagedResources in all namespaces")
	run.press("/webshop-sale", tcell.KeyEnter)
	run.shows("webshop-sale", "Unhealthy", "1 of 1") // with its class in between, if other tests have ManagedResources of another class
	run.press(tcell.KeyEnter)
	run.shows("Deployment webshop/sale is Unhealthy", "FailedScheduling")
	run.press(tcell.KeyEnd)
	run.shows("└─ Deployment webshop/sale")
	end()
	kit.Must(t, run.ends())
}

func TestTopPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{resourcesv1alpha1.GroupName}, Resources: []string{"managedresources"}, Verbs: verbs}
	}
	w.permit(t, "watcher", rule("get", "list", "watch"))
	w.permit(t, "lister", rule("get", "list"))
	run := w.startTop(t.Context(), t, top.Options{}, nil, "-n", "garden", "--as", "watcher")
	run.shows("webshop-app Ready")
	run.press("/app", tcell.KeyEnter, "r")
	run.shows("You may not reconcile garden/webshop-app")
	run.press(tcell.KeyEnter)
	run.shows("Not shown, because you may not read them", "Coupon webshop/welcome")
	run.press(tcell.KeyCtrlC)
	kit.Must(t, run.ends())
	for user, wanted := range map[string]string{"lister": "cannot watch resource", "nobody": "cannot list resource"} {
		run := w.startTop(t.Context(), t, top.Options{}, nil, "-n", "garden", "--as", user)
		if text := kit.TextOf(run.ends()); !strings.Contains(text, wanted) || !strings.Contains(text, "Request the permission") {
			t.Errorf("%s: %s", user, text)
		}
		if user == "nobody" && run.begun > 0 {
			t.Error("the screen was cleared before an error")
		}
	}
	if text := kit.TextOf(w.topWithoutKind); !strings.Contains(text, "does not serve ManagedResources") {
		t.Errorf("without the kind: %s", text)
	}
	w.run("top").says(t, 2, "!top needs a terminal: use `kubectl mr get -w`")
	w.run("top", "webshop-app").says(t, 2, "!kubectl mr get webshop-app -w")
}

// TestTopWithoutConnection breaks the connection, and restores it.
func TestTopWithoutConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	wire := newWire(t, w.host())
	run := w.startTop(t.Context(), t, top.Options{}, nil, "-n", namespace, "--server", "https://"+wire.address)
	run.shows("No ManagedResources found in namespace", wire.address)
	wire.cut()
	run.shows("NO CONNECTION to "+wire.address, "retrying", "No ManagedResources found")
	w.deliver(t, namespace, "shop", state.Ready, configMap)
	wire.mend(t)
	run.shows("ManagedResources in namespace", "> shop Ready")
	run.press("q")
	kit.Must(t, run.ends())
}

// wire forwards connections and can be cut.
type wire struct {
	address, to string
	mu          sync.Mutex
	open        []io.Closer
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	w := &wire{address: "127.0.0.1:0", to: to}
	w.mend(t)
	t.Cleanup(w.cut)
	return w
}

func (w *wire) mend(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", w.address)
	kit.Must(t, err)
	w.address = listener.Addr().String()
	w.keep(listener)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", w.to)
			if err != nil {
				_ = from.Close()
				continue
			}
			w.keep(from, to)
			go func() { _, _ = io.Copy(to, from) }()
			go func() { _, _ = io.Copy(from, to) }()
		}
	}()
}

func (w *wire) keep(all ...io.Closer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, all...)
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.open {
		_ = each.Close()
	}
	w.open = nil
}

// TestTopPanics checks that the terminal is released after a panic, in the drawing code and elsewhere.
func TestTopPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.startTop(t.Context(), t, top.Options{}, nil, "-n", "garden")
	run.shows("webshop-app")
	run.mu.Lock()
	run.fails = true
	run.mu.Unlock()
	if err := run.ends(); kit.TextOf(err) != "panic: the terminal broke" {
		t.Errorf("top ended with %v", err)
	}
	run = w.startTop(t.Context(), t, top.Options{}, func(c *console.Console) {
		c.Wrap = func(config *rest.Config) *rest.Config {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
					if request.URL.Query().Has("watch") {
						panic("the watch broke")
					}
					return next.RoundTrip(request)
				})
			})
			return config
		}
	}, "-n", "garden")
	if err := run.ends(); !strings.HasPrefix(kit.TextOf(err), "panic: the watch broke") {
		t.Errorf("top ended with %v", err)
	}
}

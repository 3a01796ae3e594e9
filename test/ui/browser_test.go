package ui

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	browserlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/trellis-k8s/trellis/test/kit"
)

var (
	inBrowser = flag.Bool("ui.browser", false, "also test the page in a real Chromium (make test-ui)")
	axePath   = flag.String("ui.axe", "", "axe.js of axe-core, to check every view for accessibility")
	shotsPath = flag.String("ui.shots", "", "directory for screenshots of the views")
)

// browser is one Chromium that all tests of a run share.
var browser = struct {
	sync.Once
	context.Context
	path string
	err  error
}{}

// tab is a page in a browser context of its own, with its own cookies.
type tab struct {
	context.Context
	t    *testing.T
	site *site

	mu     sync.Mutex
	errors []string
}

// needBrowser skips a test if no browser was requested or none is installed.
func needBrowser(t *testing.T) {
	t.Helper()
	if !*inBrowser {
		t.Skip("needs a browser: make test-ui")
	}
	browser.Do(func() {
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if browser.path, browser.err = exec.LookPath(name); browser.err == nil {
				break
			}
		}
	})
	if browser.err != nil {
		t.Skip("chromium is not installed: apt-get install -y --no-install-recommends chromium")
	}
}

// open opens the page at a location, such as "#/fleet".
func (s *site) open(t *testing.T, place string) *tab {
	t.Helper()
	needBrowser(t)
	allocator, free := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser.path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(kit.WaitTimeout))...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() { end(); free() })
	return s.openIn(ctx, t, place)
}

func (s *site) openIn(ctx context.Context, t *testing.T, place string) *tab {
	t.Helper()
	page := &tab{Context: ctx, t: t, site: s}
	kit.Must(t, chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900)))
	kit.Must(t, chromedp.Listen(ctx, page.note))
	addresses := printed.FindAllString(s.written.String(), -1)
	address := s.base + "/"
	if len(addresses) > 0 {
		address = addresses[len(addresses)-1]
	}
	kit.Must(t, chromedp.Do(ctx, chromedp.Navigate(address+place)))
	page.await("the page is live", `document.querySelector("#live.on") !== null`)
	t.Cleanup(func() {
		page.mu.Lock()
		defer page.mu.Unlock()
		for _, text := range page.errors {
			t.Errorf("the browser reported a problem: %s", text)
		}
	})
	return page
}

// note records problems in the page: exceptions and violations of its content security policy.
func (p *tab) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(event.ExceptionDetails)
		p.errors = append(p.errors, string(text))
	case *browserlog.EventEntryAdded:
		if strings.Contains(event.Entry.Text, "Content Security Policy") {
			p.errors = append(p.errors, event.Entry.Text)
		}
	}
}

// value evaluates a script and returns its result.
func value[T any](p *tab, script string) T {
	p.t.Helper()
	found, err := chromedp.Run(p, chromedp.Evaluate[T](script))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return found
}

// await waits until a script returns true.
func (p *tab) await(reason, script string) {
	p.t.Helper()
	kit.Eventually(p.t, reason, func() string {
		holds, err := chromedp.Run(p, chromedp.Evaluate[bool](script))
		if err == nil && holds {
			return ""
		}
		text, _ := chromedp.Run(p, chromedp.Evaluate[string](`location.hash + "\n" + document.body.innerText.slice(0, 1500)`))
		return fmt.Sprintf("%s is %t (%v) on the page\n%s", script, holds, err, text)
	})
}

// says waits until all texts are on the page.
func (p *tab) says(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		quoted, err := json.Marshal(text)
		kit.Must(p.t, err)
		p.await("the page shows "+text, fmt.Sprintf(`document.body.innerText.includes(%s)`, quoted))
	}
}

// press presses keys.
func (p *tab) press(keys string) {
	p.t.Helper()
	for _, key := range keys {
		if key < ' ' || key > '~' {
			kit.Must(p.t, chromedp.Do(p, chromedp.KeyEvent(string(key))))
			continue
		}
		for _, event := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
			kit.Must(p.t, chromedp.Do(p, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
				params := input.DispatchKeyEventParams{Type: event, Key: string(key), Text: string(key)}
				_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, params)
				return err
			})))
		}
	}
}

// goTo navigates to a location on the page.
func (p *tab) goTo(place string) {
	p.t.Helper()
	_ = value[string](p, fmt.Sprintf("location.hash = %q", place))
	p.await("it is read", `document.querySelector("[aria-busy=true]") === null`)
}

// look checks a view for accessibility and takes screenshots of it in light and dark, wide and narrow.
func (p *tab) look(name string) {
	p.t.Helper()
	if *axePath != "" {
		p.checkAccessibility(name)
	}
	if *shotsPath == "" {
		return
	}
	kit.Must(p.t, os.MkdirAll(*shotsPath, 0o750))
	for _, scheme := range []string{"dark", "light"} {
		p.colours(scheme)
		p.picture(name+"-"+scheme, 1440, 900)
		p.picture(name+"-"+scheme+"-400", 400, 800)
	}
	kit.Must(p.t, chromedp.Do(p, chromedp.EmulateViewport(1440, 900)))
}

// lookWide takes a screenshot of a view on a large screen.
func (p *tab) lookWide(name string) {
	p.t.Helper()
	if *shotsPath == "" {
		return
	}
	for _, scheme := range []string{"dark", "light"} {
		p.colours(scheme)
		p.picture(name+"-"+scheme+"-4k", 3840, 2160)
	}
	kit.Must(p.t, chromedp.Do(p, chromedp.EmulateViewport(1440, 900)))
}

func (p *tab) colours(scheme string) {
	p.t.Helper()
	kit.Must(p.t, chromedp.Do(p, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})))
}

func (p *tab) picture(name string, width, height int64) {
	p.t.Helper()
	kit.Must(p.t, chromedp.Do(p, chromedp.EmulateViewport(width, height)))
	p.await("it is drawn", fmt.Sprintf("innerWidth === %d", width))
	p.await("nothing is wider than the window", `document.documentElement.scrollWidth <= innerWidth`)
	picture, err := chromedp.Run(p, chromedp.CaptureScreenshot())
	kit.Must(p.t, err)
	kit.Must(p.t, os.WriteFile(filepath.Join(*shotsPath, name+".png"), picture, 0o600))
}

// checkAccessibility runs axe-core on the current view, in both colour schemes.
func (p *tab) checkAccessibility(name string) {
	p.t.Helper()
	script, err := os.ReadFile(*axePath)
	kit.Must(p.t, err)
	_, err = chromedp.Run(p, chromedp.Evaluate[bool](string(script)+"\n;true"))
	kit.Must(p.t, err)
	for _, scheme := range []string{"dark", "light"} {
		p.colours(scheme)
		found, err := chromedp.Run(p, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"]}).then(result => JSON.stringify(
			result.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + n.failureSummary)})), null, 1))`, chromedp.EvalAwaitPromise))
		kit.Must(p.t, err)
		if found != "[]" {
			p.t.Errorf("axe-core reports violations in %s in %s colours:\n%s", name, scheme, found)
		}
	}
}

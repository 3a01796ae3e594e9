package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

// visit opens the page in a browser that is not logged in and trusts the page's certificate.
func (s *served) visit(t *testing.T, place string) *tab {
	t.Helper()
	needBrowser(t)
	allocator, free := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser.path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.Flag("ignore-certificate-errors", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(kit.WaitTimeout))...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() { end(); free() })
	page := &tab{Context: ctx, t: t}
	kit.Must(t, chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900)))
	kit.Must(t, chromedp.Listen(ctx, page.note))
	kit.Must(t, chromedp.Do(ctx, chromedp.Navigate(s.base+"/"+place)))
	t.Cleanup(func() {
		page.mu.Lock()
		defer page.mu.Unlock()
		for _, text := range page.errors {
			t.Errorf("the browser reported a problem: %s", text)
		}
	})
	return page
}

// fillIn puts a text into the focused field, as pasting does.
func (p *tab) fillIn(id, text string) {
	p.t.Helper()
	quoted, err := json.Marshal(text)
	kit.Must(p.t, err)
	_ = value[bool](p, fmt.Sprintf(`(() => { const field = document.getElementById(%q); field.focus(); field.value = %s; return true; })()`, id, quoted))
}

// TestLoginInBrowser checks the login, the logout, and the view of each user.
func TestLoginInBrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace, other := w.namespace(t), w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, shop)
	w.deliver(t, other, "theirs", state.Failed, settings("theirs"))
	user, token := w.account(t, namespace, "alice", viewing())
	_, poor := w.account(t, namespace, "poor", nil)
	s := w.serveToMany(t)

	p := s.visit(t, "#/mr/"+namespace+"/shop?tab=tree")
	p.says("Log in", "You see what this token may read.")
	p.await("the field has the focus", `document.activeElement.id === "token" && document.getElementById("live-text").textContent === "Logged out"`)
	p.look("login")
	p.fillIn("token", "made.up")
	p.press(kb.Enter)
	p.says("The cluster does not accept this token")
	p.await("the field is cleared", `document.getElementById("token").value === ""`)
	p.look("login-refused")
	p.fillIn("token", token)
	p.press(kb.Enter)
	p.await("the page is live, at the location of the link", fmt.Sprintf(`document.querySelector("#live.on") !== null && location.hash.startsWith("#/mr/%s/shop")`, namespace))
	p.await("the tree is shown", rows+`.includes("Secret")`)
	p.says(strings.TrimPrefix(user, "system:serviceaccount:"), "Log out", "namespace "+namespace)
	p.await("no script can read the token", `document.cookie === "" && !JSON.stringify(localStorage).includes("eyJ") && !JSON.stringify(sessionStorage).includes("eyJ")`)
	p.look("logged-in")
	p.goTo("#/")
	p.await("the list shows only the viewer's own objects", rows+`.includes("shop") && !`+rows+`.includes("theirs")`)
	p.goTo("#/mr/" + other + "/theirs")
	p.says("You may not see this.")

	_ = value[bool](p, `document.getElementById("log-out").click() ?? true`)
	p.await("the viewer is logged out", `document.querySelector("form.login") !== null && document.getElementById("log-out") === null && document.querySelector(".row") === null`)
	p.fillIn("token", poor)
	p.press(kb.Enter)
	p.says("You may list and watch ManagedResources in no namespace that has any.")
	p.goTo("#/fleet")
	p.says("Not shown, because you may not read them: Events.")
	p.look("no-rights")

	q := s.visit(t, "#/")
	q.says("Log in")
	q.fillIn("token", token)
	q.press(kb.Enter)
	q.await("the list is shown", rows+`.includes("shop")`)
	kit.Must(t, w.client.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer-alice"}}))
	q.says("You may list and watch ManagedResources in no namespace that has any.")
	q.await("no rows are shown", `document.querySelector(".rows .row") === null`)
}

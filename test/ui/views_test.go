package ui

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/ui"
	"github.com/trellis-k8s/trellis/test/kit"
)

const webserver = `---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: $NS}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: registry.example/web}]}}}
`

func settings(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: $NS}\ndata: {colour: blue}\n", name)
}

// edit changes a ConfigMap like a user.
func (w *world) edit(t *testing.T, namespace, name, colour string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"colour":%q}}`, colour))
	kit.Must(t, w.client.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, patch, client.FieldOwner("kubectl-edit")))
}

// rows is a script that returns the texts of the rows of a list or a tree, in order.
const rows = `[...document.querySelectorAll(".rows .row")].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map(row => row.innerText.replaceAll("\n", " ")).join("|")`

// TestListInBrowser checks the list: order, live changes without a reload, filter, keys.
func TestListInBrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	calm := w.deliver(t, namespace, "calm", state.Ready, settings("calm"))
	w.deliver(t, namespace, "brisk", state.Progressing, settings("brisk"))
	w.write(t, w.deliver(t, namespace, "broken", state.Failed, settings("broken")), state.Failed, "Could not apply: no")
	p := w.serve(t, "-n", namespace).open(t, "#/")
	p.await("all are shown, the ones that need attention first", fmt.Sprintf(`/^Failed.*broken.*Could not apply: no.*\|Progressing.*brisk.*\|Ready.*calm/.test(%s)`, rows))
	p.look("list")
	_ = value[bool](p, "window.same = true")
	w.write(t, calm, state.Unhealthy, "ConfigMap is missing")
	p.await("a change is shown", fmt.Sprintf(`/^Failed.*broken.*\|Unhealthy.*calm.*ConfigMap is missing.*\|Progressing.*brisk/.test(%s)`, rows))
	kit.Must(t, w.client.Delete(t.Context(), calm))
	p.await("the deleted one is no longer shown", fmt.Sprintf(`!%s.includes("calm")`, rows))
	if !value[bool](p, "window.same === true") {
		t.Error("the page was reloaded")
	}

	p.press("/")
	p.await("the filter has the focus", `document.activeElement.id === "filter"`)
	p.press("brisk")
	p.await("the filter applies", fmt.Sprintf(`/^Progressing[^|]*brisk[^|]*$/.test(%s) && location.hash.includes("q=brisk")`, rows))
	p.press(kb.Escape)
	p.await("Esc clears it", fmt.Sprintf(`%s.split("|").length === 2`, rows))
	p.press(kb.ArrowDown)
	active := `document.getElementById(document.querySelector("[role=grid]").getAttribute("aria-activedescendant"))`
	p.await("the second row is active", active+`.innerText.includes("brisk") && `+active+`.ariaSelected === "true" && document.activeElement.role === "grid"`)
	p.press(kb.Enter)
	p.await("Enter opens it", fmt.Sprintf(`location.hash.startsWith("#/mr/%s/brisk")`, namespace))
	p.press(kb.Escape)
	p.await("Esc returns to the list and the same row", `location.hash === "#/" && `+active+`?.innerText.includes("brisk")`)
	p.press("?")
	p.says("Keys", "Fold and unfold")
	p.look("help")
	p.press(kb.Escape)
	p.await("Esc closes the help", `!document.getElementById("help").open`)
	p.press("/")
	p.press("state:failed -ns:" + namespace)
	p.says("None of 2 ManagedResources matches the filter.")
}

// TestOneInBrowser checks the whole view of a ManagedResource: explanation, tree, differences, Events and history, by shareable links
// and by keys.
func TestOneInBrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Unhealthy, shop+webserver)
	w.pod(t, namespace, "web")
	w.edit(t, namespace, "settings", "red")
	kit.Must(t, w.client.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop.1"}, Reason: "Corrected", Message: "Corrected ConfigMap settings", Type: "Normal", LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: "ManagedResource", Namespace: namespace, Name: "shop", UID: mr.UID, APIVersion: resourcesv1alpha1.SchemeGroupVersion.String()},
	}))
	s := w.serve(t, "-n", namespace)
	p := s.open(t, "#/mr/"+namespace+"/shop")
	p.says("kubectl-edit", "data.colour", "Unschedulable: 0/3 nodes are available", "Conditions of the ManagedResource")
	p.look("red")

	p.goTo("#/mr/" + namespace + "/shop?tab=tree&object=" + "Pod%2F" + namespace + "%2Fweb-1")
	p.await("a link leads to an object", `document.querySelector(".facts-of h2")?.innerText.includes("web-1") && document.querySelector(".row.active").innerText.includes("web-1")`)
	p.await("every node has its state", fmt.Sprintf(`/ConfigMap.*Present.*Changed.*\|.*Secret.*Present.*Synced.*\|.*ReplicaSet.*Progressing.*Synced.*\|.*Pod web-1.*Unhealthy/.test(%s)`, rows))
	p.await("levels are exposed to assistive technology", `document.querySelector(".row.active").ariaLevel === "2" && document.querySelector("[role=treegrid]").ariaRowCount === "5"`)
	p.look("tree")
	_ = value[bool](p, `document.querySelector("[role=treegrid]").focus() ?? true`)
	p.press(kb.ArrowLeft)
	p.await("the parent is active", `document.querySelector(".row.active").innerText.includes("ReplicaSet")`)
	p.press(kb.ArrowLeft)
	p.await("it is folded", fmt.Sprintf(`document.querySelector(".row.active").ariaExpanded === "false" && !%s.includes("Pod")`, rows))
	p.press(kb.ArrowRight)
	p.await("it is unfolded", fmt.Sprintf(`%s.includes("Pod")`, rows))
	p.press("3")
	p.says("-  colour: red", "+  colour: blue", "would be changed")
	if strings.Contains(value[string](p, `document.body.innerText`), "hunter2") {
		t.Error("a secret is shown")
	}
	p.look("diff")
	p.press("4")
	p.says("Corrected ConfigMap settings")
	p.look("events")
	p.press("5")
	p.says("No changes yet.")
	w.write(t, mr, state.Progressing, "")
	p.says("ResourcesHealthy", "Progressing")
	p.await("the head is live", `document.querySelector(".title").innerText.includes("Progressing")`)
	p.look("history")

	kit.Must(t, w.client.Delete(t.Context(), mr))
	p.says("ManagedResource "+namespace+"/shop does not exist, or was deleted.", "Deleted")
	p.goTo("#/mr/" + namespace + "/never")
	p.says("does not exist, or was deleted")
	p.goTo("#/fleet")
	p.says("Drift and fights of the last hour", "Corrected ConfigMap settings")
}

// TestFleetInBrowser checks the tiles and their links to the list.
func TestFleetInBrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	first, second := w.namespace(t), w.namespace(t)
	w.deliver(t, first, "shop", state.Ready, settings("shop"))
	mr := w.deliver(t, second, "shop", state.Failed, settings("shop"))
	p := w.serve(t).open(t, "#/fleet")
	tile := func(namespace string) string {
		return "document.querySelector('[data-tile=" + namespace + "]')"
	}
	p.await("tiles by state", tile(first)+`?.innerText.includes("Ready") && `+tile(second)+`?.innerText.includes("Failed")`)
	p.look("fleet")
	w.write(t, mr, state.Progressing, "")
	p.await("tiles are live", tile(second)+`.innerText.includes("Progressing")`)
	_ = value[bool](p, tile(first)+`.click() ?? true`)
	p.await("a tile leads to its ManagedResources", fmt.Sprintf(`%s.split("|").length === 1 && %s.includes("%s/")`, rows, rows, first))
	p.press("f")
	p.await("f leads to the fleet", `location.hash === "#/fleet"`)
}

// TestMarkupInBrowser checks that texts from the cluster are shown as plain text.
func TestMarkupInBrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	const evil = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>'"&lt;b>`
	mr := w.deliver(t, namespace, "shop", state.Ready, settings("shop"))
	w.write(t, mr, state.Failed, evil)
	w.edit(t, namespace, "shop", evil)
	kit.Must(t, w.client.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop.1"}, Reason: "<b>Reason", Message: evil, Type: "Warning", LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: namespace, Name: "shop"},
	}))
	p := w.serve(t, "-n", namespace).open(t, "#/")
	p.says(evil)
	for _, tab := range []string{"why", "tree", "diff", "events", "history"} {
		p.goTo("#/mr/" + namespace + "/shop?tab=" + tab)
		p.says(evil)
	}
	p.says("<img src=x")
	p.goTo("#/mr/" + namespace + "/%3Cimg%20src=x%20onerror=window.hit=1%3E")
	p.says("is not a valid name of a ManagedResource")
	if value[bool](p, `window.hit === 1 || document.querySelector("main img, main script, main b > b") !== null`) {
		t.Error("a text was interpreted as markup")
	}
}

// TestPermissionsInBrowser checks that the page names what the viewer may not see.
func TestPermissionsInBrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, shop)
	p := w.serve(t, "-n", namespace, "--as", w.viewer(t, namespace)).open(t, "#/mr/"+namespace+"/shop?tab=tree")
	p.says("Not shown, because you may not read them: Secrets in namespace "+namespace, "Unseen", "you may not read it")
	p.look("unseen")
	p.goTo("#/mr/default/shop")
	p.says("You may not see this.", "forbidden")
	p.goTo("#/fleet")
	p.says("Not shown, because you may not read them: Events.")
}

// TestTwoTabs checks that two pages receive the same events, and that a browser without access gets an explanation.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Ready, settings("shop"))
	s := w.serve(t, "-n", namespace)
	first := s.open(t, "#/")
	ctx, end := chromedp.NewContext(first)
	t.Cleanup(end)
	second := s.openIn(ctx, t, "#/mr/"+namespace+"/shop?tab=history")
	w.write(t, mr, state.Failed, "no")
	first.await("the first page receives the change", rows+`.startsWith("Failed")`)
	second.says("Failed")
	kit.Must(t, chromedp.Do(second, chromedp.Navigate("about:blank"), chromedp.Navigate(strings.Replace(s.base, "127.0.0.1", "localhost", 1)+"/")))
	second.says("This browser is not logged in")
}

// TestLostConnection checks that the page shows how long it has been disconnected, and continues after a reconnection.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Ready, settings("shop"))
	c := kubectl.NewConsole(genericiooptions.NewTestIOStreamsDiscard(), "v0.0.0-test")
	kit.Must(t, cli.NewCommand(c, "kubectl mr").PersistentFlags().Set("kubeconfig", w.kubeconfig))
	server, err := ui.New(ui.Options{Console: c, Namespace: namespace, Scope: "a test"})
	kit.Must(t, err)
	go server.Run(t.Context())
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	kit.Must(t, err)
	serve := func() *http.Server {
		served := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: time.Minute}
		go func() { _ = served.Serve(listener) }()
		return served
	}
	served := serve()
	s := &site{base: "http://" + listener.Addr().String(), written: &kit.Output{}}
	p := s.open(t, "#/")
	p.await("it is shown", rows+`.startsWith("Ready")`)
	kit.Must(t, served.Close())
	p.says("Not live since", "The data shown is from that time.")
	p.await("the page is marked as stale", `document.body.classList.contains("stale") && document.querySelector("#banner").role === "alert"`)
	p.look("lost")
	w.write(t, mr, state.Failed, "no")
	kit.Eventually(t, "the port is free again", func() string {
		listener, err = net.Listen("tcp4", strings.TrimPrefix(s.base, "http://"))
		return kit.TextOf(err)
	})
	served = serve()
	t.Cleanup(func() { _ = served.Close() })
	p.await("it is live again, and up to date", `document.querySelector("#live.on") !== null && document.querySelector("#banner").hidden && `+rows+`.startsWith("Failed")`)
}

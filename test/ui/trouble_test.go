package ui

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

// recorder records all answers.
type recorder struct {
	http.ResponseWriter
	into *kit.Output
}

// Write writes the data and records it.
func (r recorder) Write(data []byte) (int, error) {
	_, _ = r.into.Write(data)
	return r.ResponseWriter.Write(data)
}

// Unwrap allows flushing of answers.
func (r recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// TestSecretInBrowser checks that a Secret that differs is shown as different, and that neither of its values is sent to the browser.
func TestSecretInBrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	w.write(t, w.deliver(t, namespace, "shop", state.Ready, shop), state.Unhealthy, "")
	changed := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"password":"swordfish-swordfish"}}`))
	kit.Must(t, w.client.Patch(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "password"}}, changed, client.FieldOwner("kubectl-edit")))
	answered := &kit.Output{}
	s := w.serveThrough(t, namespace, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Accept-Encoding")
			next.ServeHTTP(recorder{w, answered}, r)
		})
	})
	p := s.open(t, "#/mr/"+namespace+"/shop?tab=diff")
	p.says("-  password: '*** (before)'", "+  password: '*** (after)'", "The values of Secrets are hidden.")
	p.look("secret")
	seen := value[string](p, "document.documentElement.outerHTML")
	for tab, text := range map[string]string{"why": "kubectl-edit", "tree": "password", "events": "no Events", "history": "kept in memory"} {
		p.goTo("#/mr/" + namespace + "/shop?tab=" + tab)
		p.says(text)
		seen += value[string](p, "document.documentElement.outerHTML")
	}
	all := seen + answered.String()
	if !strings.Contains(answered.String(), "*** (after)") {
		t.Error("the answers were not recorded")
	}
	for _, secret := range []string{"hunter2", "swordfish", base64.StdEncoding.EncodeToString([]byte("hunter2"))[:8], base64.StdEncoding.EncodeToString([]byte("swordfish"))[:8]} {
		if at := strings.Index(all, secret); at >= 0 {
			t.Errorf("%s is shown: …%s…", secret, all[max(0, at-200):min(len(all), at+100)])
		}
	}
}

// TestSlowCluster checks that while the cluster does not answer, the page shows the known state and for how long it has been reading.
// It gives up after a time, and continues when the cluster answers again.
func TestSlowCluster(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, shop)
	var stuck atomic.Bool
	address := w.between(t, func(_ http.ResponseWriter, r *http.Request) bool {
		stop := stuck.Load() && strings.Contains(r.URL.Path, "/configmaps")
		if stop {
			<-r.Context().Done()
		}
		return stop
	})
	s := w.serve(t, "-n", namespace, "--server", address)
	p := s.open(t, "#/")
	p.await("it is listed", rows+`.includes("shop")`)
	stuck.Store(true)
	_ = value[string](p, fmt.Sprintf("location.hash = %q", "#/mr/"+namespace+"/shop?tab=tree"))
	p.await("the objects are shown, without their state", fmt.Sprintf(`/ConfigMap.*settings.*….*\|.*Secret.*password.*…/.test(%s)`, rows))
	p.says("2 objects, reading their health")
	p.await("the page shows for how long", `/Reading, [1-9]\d* s/.test(document.querySelector(".progress").innerText)`)
	p.look("slow")
	p.press("j")
	p.await("it can be used", `document.querySelector(".row.active").innerText.includes("Secret")`)
	p.says("Reading failed.", "the cluster has not answered within a minute", "2 objects, their health could not be read")
	p.look("gave-up")
	stuck.Store(false)
	p.await("the objects are read", fmt.Sprintf(`/ConfigMap.*settings.*Present.*Synced/.test(%s) && document.querySelector(".notes").innerText === ""`, rows))
	p.await("it is live", `document.querySelector("#live.on") !== null && document.querySelector("#banner").hidden`)
}

// TestDeletedInBrowser checks that the page reports when the ManagedResource that it shows is deleted, keeps its content, and continues
// with a new one of the same name.
func TestDeletedInBrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Ready, shop)
	p := w.serve(t, "-n", namespace).open(t, "#/mr/"+namespace+"/shop?tab=tree")
	p.await("it is read", rows+`.includes("Synced")`)
	_ = value[bool](p, "window.same = true")
	kit.Must(t, w.client.Delete(t.Context(), mr))
	p.says("ManagedResource "+namespace+"/shop does not exist, or was deleted.", "The data below is from before its deletion.", "Deleted")
	p.await("the former content is shown", rows+`.includes("settings")`)
	p.look("deleted")
	p.press("5")
	p.says("It was deleted.", "Deleted", "The history below is from before its deletion.")
	p.press("1")
	p.says("does not exist, or was deleted")
	again := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
	again.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: "shop"}}
	kit.Must(t, w.client.Create(t.Context(), again))
	w.write(t, again, state.Ready, "", mr.Status.Resources...)
	p.await("the new one is shown", rows+`.includes("Synced") && document.querySelector(".notes").innerText === "" && document.querySelector(".title").innerText.includes("Ready")`)
	if !value[bool](p, "window.same === true") {
		t.Error("the page was reloaded")
	}
}

// TestOpen checks that --open opens the address in the browser, and reports if it cannot.
func TestOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems open browsers with other programs")
	}
	w := newWorld(t)
	namespace, programs := w.namespace(t), t.TempDir()
	t.Setenv("PATH", programs)
	without := w.run(t, "-n", namespace, "--open")
	kit.Eventually(t, "the command reports that xdg-open is missing", func() string {
		if text := without.errors.String(); !strings.Contains(text, "Could not open the browser") || !strings.Contains(text, "xdg-open") || !strings.Contains(text, "open the address manually") {
			return "the output is " + text
		}
		return ""
	})
	if status, _, _ := without.get(t, strings.TrimPrefix(without.address, without.base)); status != http.StatusOK {
		t.Errorf("without a browser the page answers with %d", status)
	}
	opened := filepath.Join(programs, "opened")
	kit.Must(t, os.WriteFile(filepath.Join(programs, "xdg-open"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > "+opened+"\n"), 0o700))
	s := w.run(t, "-n", namespace, "--open")
	kit.Eventually(t, "the browser gets the address", func() string {
		text, err := os.ReadFile(opened)
		if !bytes.Equal(text, []byte(s.address+"\n")) {
			return fmt.Sprintf("got %q, want %q (%v)", text, s.address, err)
		}
		return ""
	})
	if text := s.errors.String(); strings.Contains(text, "cannot be opened") {
		t.Error(text)
	}
}

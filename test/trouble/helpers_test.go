package trouble

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	isTrue      = resourcesv1alpha1.ConditionTrue
	isFalse     = resourcesv1alpha1.ConditionFalse
	progressing = resourcesv1alpha1.ConditionProgressing
)

// onResource disturbs the watches of one resource.
func onResource(resource string, disturbed stream) func(*http.Request) stream {
	return func(r *http.Request) stream {
		if resourceOf(r) == resource {
			return disturbed
		}
		return stream{}
	}
}

// ignore marks a ManagedResource as ignored.
func ignore(mr *resourcesv1alpha1.ManagedResource) {
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
}

// removeAnnotations removes this mark.
func removeAnnotations(mr *resourcesv1alpha1.ManagedResource) { mr.Annotations = nil }

func withoutFinalizers(mr *resourcesv1alpha1.ManagedResource) { mr.Finalizers = nil }

// gone reports whether the ManagedResource with a UID no longer exists.
func (w *world) gone(name string, uid types.UID) bool {
	w.Helper()
	mr := w.managedResource(name)
	err := w.client.Get(w.Context(), w.named(name), mr)
	if !apierrors.IsNotFound(err) {
		kit.Must(w, err)
	}
	return err != nil || mr.UID != uid
}

// atLeast reports an objection if a number is too small.
func atLeast(want, got int) string {
	if got >= want {
		return ""
	}
	return fmt.Sprintf("%d, want at least %d", got, want)
}

// readsOf counts the reads of an object through a proxy.
func readsOf(p *proxy, path string) int {
	count := 0
	for _, request := range p.Single() {
		if request.Method == http.MethodGet && strings.HasSuffix(request.Path, "/"+path) {
			count++
		}
	}
	return count
}

// witness records the events of watches.
type witness struct {
	mu     sync.Mutex
	events bytes.Buffer
}

func (w *witness) sees(event []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events.Write(event)
}

// eventuallyHasSeen waits until a watch has shown the current state of a ManagedResource.
func (w *witness) eventuallyHasSeen(world *world, name string) {
	world.Helper()
	kit.Eventually(world, "the watch shows "+name, func() string {
		version := world.read(name).ResourceVersion
		w.mu.Lock()
		defer w.mu.Unlock()
		if bytes.Contains(w.events.Bytes(), []byte(`"resourceVersion":"`+version+`"`)) {
			return ""
		}
		return version + " was not shown"
	})
}

// metric returns the sum of a metric's values on lines with a prefix and certain texts.
func metric(p *kit.Process, prefix string, holding ...string) float64 {
	_, body := p.Get(p.Metrics, "/metrics")
	sum := 0.0
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, prefix) || !containsAll(line, holding) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err == nil {
			sum += value
		}
	}
	return sum
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

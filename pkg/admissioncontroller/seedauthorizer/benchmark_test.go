package seedauthorizer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/measure"
)

// fleet returns the graph of a garden with Seeds and Shoots.
func fleet(seeds, shoots int) *graph.Graph {
	g := graph.New()
	watcher := graph.NewWatcher(g, clock.RealClock{})
	for _, row := range graph.Table() {
		for i := 0; row.Kind == graph.Shoot && i < shoots; i++ {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: fmt.Sprintf("shoot-%d", i)}}
			shoot.Spec.SeedName = ptr.To(fmt.Sprintf("seed-%d", i%seeds))
			shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
			shoot.Spec.CredentialsBindingName = ptr.To(fmt.Sprintf("binding-%d", i))
			watcher.Observe(row, shoot, false)
		}
	}
	return g
}

// reviewOf returns the body of a review: the gardenlet of a Seed reads an object of a Shoot.
func reviewOf(tb testing.TB, seed, shoot, kind int) string {
	tb.Helper()
	attributes := []*authorizationv1.ResourceAttributes{
		{Verb: "get", Group: corev1beta1.GroupName, Resource: "shoots", Namespace: "garden-dev", Name: fmt.Sprintf("shoot-%d", shoot)},
		{Verb: "update", Group: corev1beta1.GroupName, Resource: "shoots", Subresource: "status", Namespace: "garden-dev", Name: fmt.Sprintf("shoot-%d", shoot)},
		{Verb: "get", Group: corev1beta1.GroupName, Resource: "cloudprofiles", Name: "local"},
		{Verb: "get", Group: "security.gardener.cloud", Resource: "credentialsbindings", Namespace: "garden-dev", Name: fmt.Sprintf("binding-%d", shoot)},
	}
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: fmt.Sprintf("gardener.cloud:system:seed:seed-%d", seed), Groups: []string{"gardener.cloud:system:seeds"}, ResourceAttributes: attributes[kind],
		},
	}
	body, err := json.Marshal(review)
	if err != nil {
		tb.Fatal(err)
	}
	return string(body)
}

// BenchmarkReviews answers reviews of API servers, from the body of the request to that of the response, in a small and in a large garden. Half of
// them are for objects of other Seeds. It reports the reviews per second of processor time, the 99th percentile of
// the time that passes, and the memory of the graph.
func BenchmarkReviews(b *testing.B) {
	for _, size := range []struct{ seeds, shoots int }{{1, 100}, {100, 10_000}} {
		b.Run(fmt.Sprintf("%d-seeds-%d-shoots", size.seeds, size.shoots), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			g := fleet(size.seeds, size.shoots)
			runtime.GC()
			runtime.ReadMemStats(&after)
			handler := NewHandler(Options{Paths: g, Ready: func() error { return nil }, Absent: func(context.Context, schema.GroupResource, graph.Vertex) (bool, error) {
				return false, nil
			}})
			var bodies []string
			for i := range 1000 {
				shoot := i * 7 % size.shoots
				bodies = append(bodies, reviewOf(b, (shoot+i%2)%(size.seeds+1), shoot, i/2%4))
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took []time.Duration
			var sum time.Duration
			for i := 0; b.Loop(); i++ {
				request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, PathSeed, strings.NewReader(bodies[i%len(bodies)]))
				request.Header.Set("Content-Type", "application/json")
				recorder := httptest.NewRecorder()
				begin, processor := time.Now(), measure.ThreadTime()
				handler.ServeHTTP(recorder, request)
				took = append(took, time.Since(begin))
				sum += measure.ThreadTime() - processor
				if recorder.Code != http.StatusOK {
					b.Fatalf("status %d: %s", recorder.Code, recorder.Body)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(len(took))/sum.Seconds(), "reviews/s")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		})
	}
}

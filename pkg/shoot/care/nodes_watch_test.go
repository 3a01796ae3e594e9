package care

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/nodeagent"
)

// servedObject returns what the API server of a shoot with some nodes and one configuration sends at the start of a watch.
func servedObject(nodes int, path string) []runtime.Object {
	var objects []runtime.Object
	if strings.HasSuffix(path, "/secrets") {
		secret := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
		secret.Namespace, secret.Name, secret.ResourceVersion = metav1.NamespaceSystem, "key", "1"
		secret.Annotations = map[string]string{nodeagent.AnnotationChecksum: "sum"}
		return append(objects, secret)
	}
	for i := range nodes {
		objects = append(objects, &corev1.Node{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("node-%d", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: "1",
				Labels:      map[string]string{constants.LabelWorkerPool: "a", constants.LabelWorkerPoolNodeAgentSecretName: "key", "other": "x"},
				Annotations: map[string]string{annotationApplied: "sum"},
			},
			Status: corev1.NodeStatus{
				NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.1"}, Images: []corev1.ContainerImage{{SizeBytes: 1}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	return objects
}

// serveNodes starts such an API server.
func serveNodes(t *testing.T, nodes int) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		query, objects := request.URL.Query(), servedObject(nodes, request.URL.Path)
		send := json.NewEncoder(writer)
		if query.Get("watch") == "" {
			items := make([]any, 0, len(objects))
			for _, object := range objects {
				items = append(items, object)
			}
			kind, version := "NodeList", "v1"
			if strings.HasSuffix(request.URL.Path, "/secrets") {
				kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
			}
			_ = send.Encode(map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]string{"resourceVersion": "1"}, "items": items})
			return
		}
		if query.Get("sendInitialEvents") == "true" {
			for _, object := range objects {
				_ = send.Encode(map[string]any{"type": "ADDED", "object": object})
			}
			meta := map[string]any{"resourceVersion": "1", "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
			last := map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": meta}
			if strings.HasSuffix(request.URL.Path, "/secrets") {
				last["kind"], last["apiVersion"] = "PartialObjectMetadata", "meta.k8s.io/v1"
			}
			_ = send.Encode(map[string]any{"type": "BOOKMARK", "object": last})
		}
		if flusher, is := writer.(http.Flusher); is {
			flusher.Flush()
		}
		<-request.Context().Done()
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// watched returns the nodes that a watch with a limit shows.
func watched(t *testing.T, nodes, limit int) *Nodes {
	t.Helper()
	config := serveNodes(t, nodes)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	c, name := newClusters(), types.NamespacedName{Namespace: "garden-dev", Name: "one"}
	watch, err := c.watchNodes(t.Context(), name, config, transport, limit)
	if err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case event := <-c.changes:
			if event.Object.GetName() != name.Name {
				t.Fatalf("%s is triggered", event.Object.GetName())
			}
		case <-time.After(time.Minute):
			t.Fatal("the Shoot is not triggered")
		}
		if shown, err := watch.read(t.Context()); err != nil || shown != nil {
			if err != nil {
				t.Fatal(err)
			}
			return shown
		}
	}
}

// TestWatchNodes checks that nodes and checksums are watched, and that the Shoot is triggered once they are known.
func TestWatchNodes(t *testing.T) {
	shown := watched(t, 3, 3)
	want := Node{Name: "node-0", Pool: "a", Secret: "key", Applied: "sum", Kubelet: "v1.37.1"}
	if len(shown.Items) != 3 || shown.Items[0] != want || shown.Checksums["key"] != "sum" {
		t.Errorf("%+v", shown)
	}
}

// TestWatchTooManyNodes checks that the watch ends if the cluster has more nodes than the limit.
func TestWatchTooManyNodes(t *testing.T) {
	if shown := watched(t, 4, 3); !shown.Crowded {
		t.Errorf("%+v", shown)
	}
}

// Package ui tests the page for ManagedResources: the server, and in a real browser its appearance and behaviour.
package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// No resource-manager runs. Tests write its results themselves, to control when something changes.
var shared controlplane.Shared

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	directory, err := os.MkdirTemp("", "ui-")
	if err != nil {
		panic(err)
	}
	shared.Options.AuditLog = filepath.Join(directory, "audit.log")
	code := shared.Run(m)
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

// world is the state that all tests share.
type world struct {
	kubeconfig string
	client     client.Client
}

var theWorld = struct {
	sync.Once
	*world
	err error
}{}

func newWorld(t *testing.T) *world {
	t.Helper()
	cp := shared.Get(t)
	theWorld.Do(func() {
		config := cp.Config()
		config.QPS = -1
		theWorld.world = &world{kubeconfig: filepath.Join(cp.Dir(), "kubeconfig")}
		theWorld.client, theWorld.err = client.New(config, client.Options{Scheme: console.Scheme()})
		if theWorld.err == nil {
			_, theWorld.err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../../config/crd"}, ErrorIfPathMissing: true})
		}
	})
	kit.Must(t, theWorld.err)
	return theWorld.world
}

func (w *world) namespace(t *testing.T) string {
	t.Helper()
	namespace := kit.NewNamespace(t, w.client, "ui", nil)
	kit.Must(t, w.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}))
	return namespace
}

// apply applies manifests like the resource-manager and returns their entries in the inventory of a ManagedResource. $NS is replaced by
// the namespace.
func (w *world) apply(t *testing.T, namespace, owner, manifests string) []resourcesv1alpha1.ObjectReference {
	t.Helper()
	var entries []resourcesv1alpha1.ObjectReference
	for _, document := range strings.Split(strings.ReplaceAll(manifests, "$NS", namespace), "---\n") {
		object := &unstructured.Unstructured{}
		kit.Must(t, yaml.Unmarshal([]byte(document), &object.Object))
		object.SetLabels(map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"})
		object.SetAnnotations(map[string]string{
			resourcesv1alpha1.AnnotationOrigin: namespace + "/" + owner, resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.Description,
		})
		entry := resourcesv1alpha1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		}
		kit.Must(t, w.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(resourcesv1alpha1.FieldManager), client.ForceOwnership))
		applied := &metav1.PartialObjectMetadata{}
		applied.SetGroupVersionKind(object.GroupVersionKind())
		kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(object), applied))
		entry.Digest = "sent." + live.Observe(applied, fieldowner.DefaultPolicy()).OwnedDigest
		entries = append(entries, entry)
	}
	return entries
}

// deliver creates a ManagedResource with its Secret, applies its manifests and writes its status.
func (w *world) deliver(t *testing.T, namespace, name string, word state.Word, manifests string) *resourcesv1alpha1.ManagedResource {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"manifests.yaml": []byte(strings.ReplaceAll(manifests, "$NS", namespace))}}
	kit.Must(t, w.client.Create(t.Context(), secret))
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: name}}
	kit.Must(t, w.client.Create(t.Context(), mr))
	w.write(t, mr, word, "", w.apply(t, namespace, name, manifests)...)
	return mr
}

// write writes the status of a ManagedResource. The inventory is unchanged if no entries are given.
func (w *world) write(t *testing.T, mr *resourcesv1alpha1.ManagedResource, word state.Word, message string, entries ...resourcesv1alpha1.ObjectReference) {
	t.Helper()
	statuses := map[state.Word][3]resourcesv1alpha1.ConditionStatus{
		state.Ready: {"True", "True", "False"}, state.Failed: {"False", "True", "False"}, state.Unhealthy: {"True", "False", "False"},
		state.Progressing: {"True", "True", "True"},
	}[word]
	now := metav1.Now()
	mr.Status.Conditions = nil
	for i, status := range statuses {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
			Type: resourcesv1alpha1.ConditionTypes()[i], Status: status, Reason: "Reason" + string(status), Message: message, LastTransitionTime: now, LastUpdateTime: now,
		})
	}
	mr.Status.ObservedGeneration = mr.Generation
	if entries != nil {
		mr.Status.Resources = entries
	}
	kit.WriteStatus(t, w.client, mr)
	if is := state.Of(mr); is.Word != word {
		t.Fatalf("%s is %s, want %s", mr.Name, is.Word, word)
	}
}

// site is a page that a running command serves.
type site struct {
	base string
	// address opens the page. It works once.
	address string
	// written is the standard output of the command, errors its warnings.
	written, errors *kit.Output
	// stop ends the command. done is closed when it has ended.
	stop context.CancelFunc
	done chan struct{}
	http *http.Client
}

// serve runs the command until the test ends, and logs one client in.
func (w *world) serve(t *testing.T, args ...string) *site {
	t.Helper()
	s := w.run(t, args...)
	jar, err := cookiejar.New(nil)
	kit.Must(t, err)
	s.http.Jar = jar
	if status, _, _ := s.get(t, strings.TrimPrefix(s.address, s.base)); status != http.StatusOK {
		t.Fatalf("the page answers with %d", status)
	}
	return s
}

var printed = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\w+`)

// run runs the command until the test ends.
func (w *world) run(t *testing.T, args ...string) *site {
	t.Helper()
	s := &site{written: &kit.Output{}, errors: &kit.Output{}, done: make(chan struct{}), http: &http.Client{}}
	c := kubectl.NewConsole(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: s.written, ErrOut: s.errors}, "v0.0.0-test")
	command := cli.NewCommand(c, "kubectl mr")
	command.SetArgs(append([]string{"ui", "--kubeconfig", w.kubeconfig}, args...))
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	var err error
	go func() {
		defer close(s.done)
		err = command.ExecuteContext(ctx)
	}()
	t.Cleanup(func() {
		s.stop()
		<-s.done
		if err != nil {
			t.Errorf("the command ended with %v", err)
		}
	})
	kit.Eventually(t, "the address is printed", func() string {
		select {
		case <-s.done:
			t.Fatalf("the command ended with %v\n%s", err, s.errors)
		default:
		}
		if s.address = printed.FindString(s.written.String()); s.address == "" {
			return "the output is " + s.written.String()
		}
		return ""
	})
	s.base, _, _ = strings.Cut(s.address, "/?")
	return s
}

// get requests a path.
func (s *site) get(t *testing.T, path string) (int, http.Header, string) {
	t.Helper()
	return s.send(t, http.MethodGet, path, nil)
}

func (s *site) send(t *testing.T, method, path string, change func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.base+path, http.NoBody)
	kit.Must(t, err)
	if change != nil {
		change(request)
	}
	response, err := s.http.Do(request)
	kit.Must(t, err)
	body, err := io.ReadAll(response.Body)
	kit.Must(t, err)
	kit.Must(t, response.Body.Close())
	return response.StatusCode, response.Header, string(body)
}

// read requests a part of a ManagedResource and decodes it into value.
func (s *site) read(t *testing.T, path string, value any) (notes []string) {
	t.Helper()
	status, _, body := s.get(t, path)
	if status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, status, body)
	}
	answer := struct {
		Value json.RawMessage
		Notes []string
	}{}
	kit.Must(t, json.Unmarshal([]byte(body), &answer))
	kit.Must(t, json.Unmarshal(answer.Value, value))
	return answer.Notes
}

func resourcePath(namespace, name, part string) string {
	return fmt.Sprintf("/api/resources/%s/%s/%s", namespace, name, part)
}

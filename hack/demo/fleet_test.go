package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiserver "github.com/trellis-k8s/trellis/cmd/apiserver/app"
	controllermanager "github.com/trellis-k8s/trellis/cmd/controller-manager/app"
	gardenlet "github.com/trellis-k8s/trellis/cmd/gardenlet/app"
	resourcemanager "github.com/trellis-k8s/trellis/cmd/resource-manager/app"
	scheduler "github.com/trellis-k8s/trellis/cmd/scheduler/app"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// started receives the progress, and is closed once everything runs.
type started struct {
	bytes.Buffer

	closed chan struct{}
}

func (s *started) Close() error {
	close(s.closed)
	return nil
}

// TestFleet runs the whole demo: its tour, and the rest of the life of the Shoot that the tour creates.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("needs control planes, which -short excludes")
	}
	dir := filepath.Join(t.TempDir(), "run")
	d := &demo{dir: dir, out: &bytes.Buffer{}, built: map[string]string{}}
	kit.Must(t, d.complete())
	for name, build := range map[string]func() (string, error){
		"apiserver": controlplane.BuildProgram[apiserver.Program], "controller-manager": controlplane.BuildProgram[controllermanager.Program],
		"gardenlet": controlplane.BuildProgram[gardenlet.Program], "resource-manager": controlplane.BuildProgram[resourcemanager.Program],
		"scheduler": controlplane.BuildProgram[scheduler.Program],
	} {
		path, err := build()
		kit.Must(t, err)
		d.built[name] = path
	}
	kit.Must(t, d.makeDirectory())
	progress, ended := &started{closed: make(chan struct{})}, make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- d.serve(ctx, progress) }()
	select {
	case <-progress.closed:
	case err := <-ended:
		t.Fatalf("the demo does not start: %v\n%s", err, &progress.Buffer)
	}

	defer func() {
		cancel()
		kit.Must(t, <-ended)
	}()
	var out bytes.Buffer
	config, err := clientcmd.BuildConfigFromFlags("", d.path("kubeconfig"))
	kit.Must(t, err)
	if err := tour(t.Context(), config, d.kubectl(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"Applied after", "2 of 2 pods ready", "corrected", "Create Succeeded", "kube-system", "gardener.cloud:system:admins"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tour does not print %q:\n%s", want, &out)
		}
	}
	scheme := runtime.NewScheme()
	kit.Must(t, corev1beta1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	kit.Must(t, err)
	liveOn(t, c)
}

// liveOn hibernates, wakes up and deletes the Shoot.
func liveOn(t *testing.T, c client.Client) {
	t.Helper()
	object := &corev1beta1.Shoot{}
	for _, asleep := range []bool{true, false} {
		kit.Must(t, c.Get(t.Context(), shoot, object))
		kit.Change(t, c, object, func() { object.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(asleep)} })
		kit.EventuallyWithin(t, 6*kit.WaitTimeout, fmt.Sprintf("the Shoot is asleep: %t", asleep), func() string {
			kit.Must(t, c.Get(t.Context(), shoot, object))
			last := object.Status.LastOperation
			if object.Status.ObservedGeneration != object.Generation || last.State != corev1beta1.LastOperationStateSucceeded || object.Status.IsHibernated != asleep {
				return last.Description
			}
			return ""
		})
	}
	kit.Change(t, c, object, func() {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	})
	kit.Must(t, c.Delete(t.Context(), object))
	kit.EventuallyWithin(t, 6*kit.WaitTimeout, "the Shoot is deleted", func() string {
		if err := c.Get(t.Context(), shoot, object); err != nil {
			return kit.TextOf(client.IgnoreNotFound(err))
		}
		return object.Status.LastOperation.Description
	})
}

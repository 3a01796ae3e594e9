package extension

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
)

// checked is an actuator that validates the configuration against the infrastructure.
type checked struct {
	actuator[*extensionsv1alpha1.Infrastructure]
}

func (c checked) Validate(_ context.Context, object *extensionsv1alpha1.Infrastructure, _ *extension.Cluster) field.ErrorList {
	if object.Labels["network"] == "unknown" {
		return field.ErrorList{field.NotFound(field.NewPath("spec", "providerConfig", "network"), "unknown")}
	}
	return nil
}

// TestLeftAlone checks that the objects of failed or ignored Shoots are not reconciled until that changes. An event of a
// source that an operation waits for triggers a reconcile. A configuration that the infrastructure rejects is reported as a
// configuration problem of the user.
func TestLeftAlone(t *testing.T) {
	w := newWorld(t)
	const shoot, barrier = "shoot--dev--alone", "shoot--dev--barrier"
	w.shoot(shoot, nil)
	w.shoot(barrier, nil)
	mgr, _ := w.manager()
	made, changes := &calls{}, make(chan event.GenericEvent, 1)
	kit.Must(t, extension.AddToManager(mgr, checked{actuator[*extensionsv1alpha1.Infrastructure]{made}}, extension.Options{
		Type: "alone", RateLimiter: quickly(), Sources: []source.Source{source.Channel(changes, &handler.EnqueueRequestForObject{})},
	}))
	kit.Run(t, mgr)
	create := func(namespace string) *extensionsv1alpha1.Infrastructure {
		t.Helper()
		object := &extensionsv1alpha1.Infrastructure{}
		w.read("infrastructure", namespace, object)
		object.Spec.Type = "alone"
		configure(object, settings{Text: "first"})
		flow.AskExtension(object, constants.OperationReconcile, time.Now())
		kit.Must(t, w.client.Create(t.Context(), object))
		return object
	}
	object, other := create(shoot), create(barrier)
	w.eventually(object, "Create Succeeded")
	w.eventually(other, "Create Succeeded")

	for name, test := range map[string]struct{ stop, resume func(*corev1beta1.Shoot) }{
		"failed": {func(shoot *corev1beta1.Shoot) {
			shoot.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed}
		}, func(shoot *corev1beta1.Shoot) {
			shoot.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing
		}},
		"ignored": {func(shoot *corev1beta1.Shoot) {
			shoot.Annotations = map[string]string{constants.AnnotationShootIgnore: "true"}
		}, func(shoot *corev1beta1.Shoot) { shoot.Annotations = nil }},
	} {
		before := len(made.of(object))
		w.changeShoot(shoot, test.stop)
		kit.EventuallyTrue(t, "the cache shows that the Shoot is "+name, func() bool {
			cluster, err := extension.GetCluster(t.Context(), mgr.GetClient(), shoot)
			return err == nil && (cluster.Failed() || cluster.Ignored())
		})
		w.ask(object, constants.OperationReconcile, settings{Text: name})
		w.ask(other, constants.OperationReconcile, settings{Text: name})
		w.eventually(other, "Reconcile Succeeded")
		if more := made.of(object)[before:]; len(more) > 0 {
			t.Errorf("the actuator was called for a Shoot that is %s: %v", name, more)
		}
		w.changeShoot(shoot, test.resume)
		w.eventually(object, "Reconcile Succeeded")
		if more := made.of(object)[before:]; !slices.Equal(more, []string{"Reconcile"}) {
			t.Errorf("the calls after that are %v", more)
		}
	}

	w.ask(object, constants.OperationReconcile, settings{Wait: "the router is being created"})
	kit.Eventually(t, "the object reports what it waits for", func() string {
		kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		if last := object.Status.LastOperation; last.Description != "The router is being created" || last.Progress != 50 {
			return last.Description
		}
		return ""
	})
	before := len(made.of(object))
	changes <- event.GenericEvent{Object: object}
	kit.EventuallyTrue(t, "the source triggers a reconcile", func() bool { return len(made.of(object)) > before })

	kit.Change(t, w.client, object, func() { object.Labels = map[string]string{"network": "unknown"} })
	w.ask(object, constants.OperationReconcile, settings{})
	w.eventually(object, "Reconcile Error")
	if failed := object.Status.LastError; !slices.Equal(failed.Codes, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) {
		t.Errorf("the error is %+v", failed)
	}
}

// Package seedrestriction implements the admission webhooks that restrict what gardenlets and extensions create. The seed authorizer permits
// the creation of whole kinds, because it does not see the objects. These webhooks check that a new object belongs to the Seed or the
// self-hosted Shoot of the requester. They read the garden without a cache, so that a restarted process decides as before.
package seedrestriction

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/requester"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// PathSeed and PathShoot are the paths of the webhooks.
const (
	PathSeed  = "/webhooks/admission/seedrestriction"
	PathShoot = "/webhooks/admission/shootrestriction"
)

// Options are the options of the webhooks.
type Options struct {
	// Reader reads the garden without a cache.
	Reader client.Reader
	// MayRead reports whether an object is needed by a Seed, from the graph of the seed authorizer.
	MayRead func(object, seed graph.Vertex) bool
	Clock   clock.PassiveClock
}

// check decides about a write of a resource by a requester. An error refuses it.
type check func(ctx context.Context, w *write) error

// write is a request with its requester.
type write struct {
	*admission.Request
	Options

	by requester.Requester
}

// New returns the handler for programs of Seeds. Requests of others are admitted.
func New(options Options) admission.Handler {
	return handler(options, seedChecks, func(r requester.Requester) bool { return r.Seed != "" })
}

// NewForShoots returns the handler for programs of self-hosted Shoots.
func NewForShoots(options Options) admission.Handler {
	return handler(options, shootChecks, func(r requester.Requester) bool { return r.Seed == "" })
}

func handler(options Options, checks map[string]check, concerns func(requester.Requester) bool) admission.Handler {
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		by, known := requester.Of(request.UserInfo.Username, request.UserInfo.Groups)
		if !known || !concerns(by) || request.SubResource != "" {
			return nil
		}
		check, found := checks[request.Resource.Resource]
		if !found {
			return admit.Refuse(http.StatusBadRequest, "the %s may not %s %s: this webhook has no rule for them", by, request.Operation, request.Resource.Resource)
		}
		return check(ctx, &write{Request: request, Options: options, by: by})
	})
}

// refuse returns the error for an object that belongs to another Seed or Shoot.
func (w *write) refuse(format string, args ...any) error {
	return admit.Refuse(http.StatusForbidden, "%s %s does not belong to the requester, the %s: %s",
		w.Kind.Kind, describe(w.Namespace, w.Name), w.by, fmt.Sprintf(format, args...))
}

func describe(namespace, name string) string {
	switch {
	case name == "":
		return "without a name"
	case namespace == "":
		return name
	default:
		return namespace + "/" + name
	}
}

// extension refuses requests of extensions.
func (w *write) extension() error {
	if w.by.Program == requester.Extension {
		return w.refuse("extensions do not write this kind")
	}
	return nil
}

// decoded returns the new object of a write.
func decoded[T any](w *write) (*T, error) { return admit.Decode[T](w.Request, w.Object.Raw) }

// former returns the stored object that a write changes.
func former[T any](w *write) (*T, error) { return admit.Decode[T](w.Request, w.OldObject.Raw) }

func (w *write) creates() bool { return w.Operation == admissionv1.Create }

// get reads an object. It returns false if the object does not exist.
func (w *write) get(ctx context.Context, namespace, name string, object client.Object) (bool, error) {
	switch err := w.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s: %w", object, describe(namespace, name), err)
	}
	return true, nil
}

// ownsShoot refuses a write unless a Shoot is on the Seed of the requester. During a migration, the former Seed counts only if former is set.
func (w *write) ownsShoot(ctx context.Context, namespace, name string, former bool) error {
	shoot := &corev1beta1.Shoot{}
	found, err := w.get(ctx, namespace, name, shoot)
	switch {
	case err != nil:
		return err
	case !found:
		return w.refuse("Shoot %s/%s does not exist", namespace, name)
	case ptr.Deref(shoot.Spec.SeedName, "") == w.by.Seed, former && ptr.Deref(shoot.Status.SeedName, "") == w.by.Seed:
		return nil
	}
	return w.refuse("Shoot %s/%s is not on this Seed", namespace, name)
}

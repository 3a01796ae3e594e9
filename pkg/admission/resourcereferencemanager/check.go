package resourcereferencemanager

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

var (
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secretKind    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// check judges the references of one request, and collects what is wrong with them.
type check struct {
	ctx     context.Context
	request *admission.Request
	garden  *admission.Garden
	errs    field.ErrorList
	// failed is the first failure to read a fact.
	failed error
}

// result returns the error of the request: 503 if a fact could not be read, else 403 with all wrong references.
func (c *check) result() error {
	if c.failed != nil {
		return c.failed
	}
	return admission.Forbidden(c.errs)
}

func (c *check) fail(err error) {
	if c.failed == nil {
		c.failed = err
	}
}

func (c *check) refuse(path *field.Path, format string, values ...any) {
	c.errs = append(c.errs, field.Forbidden(path, fmt.Sprintf(format, values...)))
}

// exists judges a reference to an object that is read live. It returns whether the object exists.
func (c *check) exists(path *field.Path, kind schema.GroupVersionKind, namespace, name string) bool {
	found, err := c.garden.Exists(c.ctx, kind, namespace, name)
	switch {
	case apierrors.IsServiceUnavailable(err):
		c.fail(err)
	case err != nil:
		c.refuse(path, "%v", err)
	case !found:
		c.missing(path, kind.Kind, namespace, name)
	}
	return err == nil && found
}

func (c *check) missing(path *field.Path, kind, namespace, name string) {
	key := name
	if namespace != "" {
		key = admission.Key(namespace, name)
	}
	c.errs = append(c.errs, field.NotFound(path, fmt.Sprintf("%s %s", kind, key)))
}

// known returns an object that memory or the API server has; nil if it does not exist or cannot be read, which is then an error of
// the request.
func known[T client.Object](c *check, path *field.Path, reader admission.Reader[T], kind, namespace, name string) (T, bool) {
	object, err := reader.Get(c.ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		c.missing(path, kind, namespace, name)
	} else if err != nil {
		c.fail(err)
	}
	return object, err == nil
}

// readable judges whether the user of the request may read an object to which it refers. Otherwise a user could have someone with
// more rights read it.
func (c *check) readable(path *field.Path, resource schema.GroupResource, namespace, name string) bool {
	if isShoot(c.request, namespace) {
		return true
	}
	allowed, err := c.garden.May(c.ctx, c.request.User, "get", resource, "", namespace, name)
	if err != nil {
		c.fail(admission.Unavailable("%v", err))
		return false
	}
	if !allowed {
		c.refuse(path, "user %q may not refer to %s %s, because this needs the right to get it", c.request.User.GetName(), resource, admission.Key(namespace, name))
	}
	return allowed
}

// isShoot reports whether the user is the self-hosted Shoot of a namespace, whose references the rights of its node decide.
func isShoot(request *admission.Request, namespace string) bool {
	for _, group := range request.User.GetGroups() {
		if group == constants.ShootsGroup {
			return strings.HasPrefix(request.User.GetName(), constants.PrefixShootUser+namespace+":")
		}
	}
	return false
}

// resource judges a reference to an object of any kind in a namespace.
func (c *check) resource(path *field.Path, version, kind, namespace, name string) {
	group, err := schema.ParseGroupVersion(version)
	if err != nil {
		c.refuse(path.Child("apiVersion"), "%v", err)
		return
	}
	typed := group.WithKind(kind)
	resource, namespaced, err := c.garden.ResourceOf(typed)
	switch {
	case apierrors.IsServiceUnavailable(err):
		c.fail(err)
	case err != nil:
		c.refuse(path, "%v", err)
	case !namespaced:
		c.refuse(path.Child("kind"), "objects of the kind %s are not in namespaces", kind)
	case c.readable(path, resource, namespace, name):
		c.exists(path, typed, namespace, name)
	}
}

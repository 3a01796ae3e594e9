package admission_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestAdapter checks which requests reach a rule, and as what its errors arrive.
func TestAdapter(t *testing.T) {
	t.Parallel()
	refuse := func(err error) admission.Handler {
		return func(context.Context, *admission.Request, *admission.Garden) error { return err }
	}
	shoots, shoot := gardencorev1beta1.Resource("shoots"), &gardencorev1beta1.Shoot{}
	for name, test := range map[string]struct {
		rule                  admission.Rule
		resource, subresource string
		operation             apiadmission.Operation
		want                  func(error) bool
	}{
		"an error is 403": {
			admission.Rule{Operations: admission.OnCreate, Validate: refuse(errors.New("no"))}, "shoots", "", apiadmission.Create, apierrors.IsForbidden,
		},
		"facts that are unknown are 503": {
			admission.Rule{Operations: admission.OnCreate, Validate: refuse(admission.Unavailable("later"))}, "shoots", "", apiadmission.Create,
			apierrors.IsServiceUnavailable,
		},
		"facts that are unknown are 503, also with the field that needs them": {
			admission.Rule{Operations: admission.OnCreate, Validate: refuse(fmt.Errorf("spec.x: %w", admission.Unavailable("later")))}, "shoots", "",
			apiadmission.Create, isUnavailableFor("Test", "spec.x: later"),
		},
		"an object that is missing is 403": {
			admission.Rule{Operations: admission.OnCreate, Validate: refuse(apierrors.NewNotFound(shoots, "x"))}, "shoots", "", apiadmission.Create,
			apierrors.IsForbidden,
		},
		"another operation": {admission.Rule{Operations: admission.OnUpdate, Validate: refuse(errors.New("no"))}, "shoots", "", apiadmission.Create, nil},
		"another resource":  {admission.Rule{Operations: admission.OnCreate, Validate: refuse(errors.New("no"))}, "seeds", "", apiadmission.Create, nil},
		"a subresource":     {admission.Rule{Operations: admission.OnUpdate, Validate: refuse(errors.New("no"))}, "shoots", "status", apiadmission.Update, nil},
		"a subresource of the rule": {
			admission.Rule{Operations: admission.OnUpdate, Subresources: []string{"binding"}, Validate: refuse(errors.New("no"))}, "shoots", "binding",
			apiadmission.Update, apierrors.IsForbidden,
		},
	} {
		test.rule.Resource = shoots
		plugins := &apiadmission.Plugins{}
		admission.Register(plugins, admission.Plugin{Name: "Test", Rules: []admission.Rule{test.rule}})
		chain, err := plugins.NewFromPlugins([]string{"Test"}, noConfiguration{}, admission.Initializer{Garden: &admission.Garden{}}, apiadmission.DecoratorFunc(
			func(handler apiadmission.Interface, _ string) apiadmission.Interface { return handler }))
		if err != nil {
			t.Fatal(err)
		}
		version := gardencorev1beta1.SchemeGroupVersion
		attributes := apiadmission.NewAttributesRecord(shoot, shoot, version.WithKind("Shoot"), "garden-x", "one", version.WithResource(test.resource),
			test.subresource, test.operation, nil, false, &user.DefaultInfo{Name: "alice"})
		validator, ok := chain.(apiadmission.ValidationInterface)
		if !ok {
			t.Fatal("the plugin does not validate")
		}
		got := validator.Validate(t.Context(), attributes, nil)
		if test.want == nil && got != nil || test.want != nil && !test.want(got) {
			t.Errorf("%s: %v", name, got)
		}
		if test.want != nil && strings.Contains(name, "403") && !strings.Contains(got.Error(), "admission plugin Test") {
			t.Errorf("%s: the error %v does not name the plugin", name, got)
		}
	}
}

// isUnavailableFor returns a function that checks for a 503 with the name of a plugin and a time for the next attempt. It checks the error
// itself, not what it wraps, because that is what the API server's library writes.
func isUnavailableFor(plugin, text string) func(error) bool {
	return func(err error) bool {
		failure, is := err.(*apierrors.StatusError) //nolint:errorlint // see above
		return is && failure.ErrStatus.Code == http.StatusServiceUnavailable && failure.ErrStatus.Details.RetryAfterSeconds > 0 &&
			failure.ErrStatus.Message == "admission plugin "+plugin+": "+text
	}
}

type noConfiguration struct{}

// ConfigFor implements the interface of providers of configurations.
func (noConfiguration) ConfigFor(string) (io.Reader, error) {
	return nil, nil
}

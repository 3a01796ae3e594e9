package cani

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestReviewOf(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"seed/a get secrets garden-dev/one":              "gardener.cloud:system:seed:a [gardener.cloud:system:seeds system:authenticated] get secrets garden-dev one",
		"seed/a GET Shoots.core.gardener.cloud x/y":      "gardener.cloud:system:seed:a [gardener.cloud:system:seeds system:authenticated] get shoots.core.gardener.cloud x y",
		"seed/a patch shoots/status x/y":                 "gardener.cloud:system:seed:a [gardener.cloud:system:seeds system:authenticated] patch shoots/status x y",
		"seed/a list shoots":                             "gardener.cloud:system:seed:a [gardener.cloud:system:seeds system:authenticated] list shoots  ",
		"seed/a list secrets seed-a/":                    "gardener.cloud:system:seed:a [gardener.cloud:system:seeds system:authenticated] list secrets seed-a ",
		"shoot/garden-dev/one get seeds a":               "gardener.cloud:system:shoot:garden-dev:one [gardener.cloud:system:shoots system:authenticated] get seeds  a",
		"--extension extension-x seed/a get secrets n/s": "system:serviceaccount:seed-a:extension-x [system:serviceaccounts system:serviceaccounts:seed-a system:authenticated] get secrets n s",
		"--extension x shoot/n/s get secrets n/s":        "error --extension needs a Seed",
		"local get secrets n/s":                          "error \"local\" is neither",
		"seed/a/b get secrets n/s":                       "error \"seed/a/b\" does not name a Seed",
	} {
		o, args := &options{}, strings.Fields(arguments)
		if args[0] == "--extension" {
			o.extension, args = args[1], args[2:]
		}
		review, err := o.reviewOf(args)
		if err != nil {
			if !strings.HasPrefix("error "+err.Error(), want) {
				t.Errorf("%s: %v, want %s", arguments, err, want)
			}
			continue
		}
		if got := describe(&review.Spec); got != want {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
}

func describe(spec *authorizationv1.SubjectAccessReviewSpec) string {
	of := spec.ResourceAttributes
	resource := of.Resource
	if of.Subresource != "" {
		resource += "/" + of.Subresource
	}
	if of.Group != "" {
		resource += "." + of.Group
	}
	return spec.User + " [" + strings.Join(spec.Groups, " ") + "] " + strings.Join([]string{of.Verb, resource, of.Namespace, of.Name}, " ")
}

func TestResolve(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "core.gardener.cloud", Version: "v1beta1"}, {Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Shoot"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
	for resource, want := range map[string]string{"shoots": "shoots.core.gardener.cloud", "shoot": "shoots.core.gardener.cloud", "secrets": "secrets", "things": ""} {
		attributes := &authorizationv1.ResourceAttributes{Resource: resource}
		err := resolve(mapper, attributes)
		got := schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource}.String()
		if (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: got %s (%v), want %q", resource, got, err, want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for want, status := range map[string]authorizationv1.SubjectAccessReviewStatus{
		"yes\n  Secret a/b is needed by Seed a": {Allowed: true, Reason: "Secret a/b is needed by Seed a"},
		"no\n  one\n  two":                      {Reason: "one\n\ntwo"},
		"no\n  not decided: the graph":          {EvaluationError: "the graph"},
		"no":                                    {},
	} {
		if got := text(status); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

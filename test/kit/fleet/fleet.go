// Package fleet starts a garden and the cluster of a Seed, both with real API servers, for tests of the controllers between them.
package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

// Fleet is a garden and the cluster of a Seed.
type Fleet struct {
	// Scheme has the kinds of both.
	Scheme *runtime.Scheme
	// Garden and Seed are clients with all rights.
	Garden, Seed client.Client
	// Gardens is the garden, and Seeds is the cluster of the Seed.
	Gardens *garden.Garden
	Seeds   *controlplane.ControlPlane
}

// Start starts the cluster of a Seed next to the garden that the tests of the package share. The cluster stops at the
// end of the test.
func Start(t *testing.T, gardens *garden.Shared, options controlplane.Options) *Fleet {
	t.Helper()
	shared := gardens.Get(t)
	seeds, err := controlplane.Start(t.Context(), options)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, seeds.Stop()) })
	return newFleet(t, shared, seeds)
}

func newFleet(t *testing.T, gardens *garden.Garden, seeds *controlplane.ControlPlane) *Fleet {
	t.Helper()
	f := &Fleet{Gardens: gardens, Seeds: seeds, Scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, served.AddToScheme,
		extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
	} {
		kit.Must(t, add(f.Scheme))
	}
	var err error
	f.Garden, err = client.New(f.Gardens.Config(), client.Options{Scheme: f.Scheme})
	kit.Must(t, err)
	f.Seed, err = client.New(f.Seeds.Config(), client.Options{Scheme: f.Scheme})
	kit.Must(t, err)
	return f
}

// Create creates an object, unless another test has already created it in the shared garden.
func Create(ctx context.Context, tb testing.TB, c client.Client, object client.Object) {
	tb.Helper()
	if err := c.Create(ctx, object); !apierrors.IsAlreadyExists(err) {
		kit.Must(tb, err)
	}
}

// SetImages defines an image for each of the names until the test ends.
func SetImages(t *testing.T, names ...string) {
	t.Helper()
	var list strings.Builder
	list.WriteString("images:\n")
	for _, name := range names {
		fmt.Fprintf(&list, "- {name: %s, repository: registry.example.org/%s, tag: v1}\n", name, name)
	}
	file := filepath.Join(t.TempDir(), "images.yaml")
	kit.Must(t, os.WriteFile(file, []byte(list.String()), 0o600))
	t.Setenv("IMAGEVECTOR_OVERWRITE", file)
}

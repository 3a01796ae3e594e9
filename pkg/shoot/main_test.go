package shoot

import (
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestMain lets the heap grow. The simulations render thousands of plans that they do not keep, and a fifth of the CPU time would be garbage
// collection.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// sharedScheme has the kinds of the seed and of Shoots. It is made once, because that takes longer than many tests.
var sharedScheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), corev1beta1.AddToScheme(scheme),
		resourcesv1alpha1.AddToScheme(scheme))
})

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := sharedScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

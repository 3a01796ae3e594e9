package containerruntime

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestPlan(t *testing.T) {
	object := &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: "local-pool"}}
	object.Spec.WorkerPool.Name = "pool"
	object.Spec.WorkerPool.Selector.MatchLabels = map[string]string{"worker.gardener.cloud/pool": "pool"}
	golden.CheckPlan(t, "containerruntime", Plan(object), nil)
}
